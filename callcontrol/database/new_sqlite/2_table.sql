CREATE TABLE model_keys (
	key_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	name TEXT NOT NULL,
	provider TEXT NOT NULL,
	secret TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_model_keys PRIMARY KEY (key_id),
	CONSTRAINT fk_model_keys_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_model_keys_account_sid_name UNIQUE (account_sid, name)
);
CREATE TABLE nodes (
	node TEXT NOT NULL,
	incarnation TEXT NOT NULL,
	place TEXT NOT NULL,
	url TEXT NOT NULL,
	started_at BIGINT NOT NULL,
	lease_until BIGINT NOT NULL,
	adopted_by TEXT, draining_since BIGINT, sip_address TEXT, version TEXT, schema_revision TEXT,
	CONSTRAINT pk_nodes PRIMARY KEY (node),
	CONSTRAINT uq_nodes_node_incarnation UNIQUE (node, incarnation)
);
CREATE TABLE number_orders (
	order_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	live_ref TEXT NOT NULL,
	number TEXT NOT NULL,
	state TEXT NOT NULL,
	months BIGINT NOT NULL,
	total_paise BIGINT NOT NULL,
	phone_number_id TEXT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT pk_number_orders PRIMARY KEY (order_id),
	CONSTRAINT fk_number_orders_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE otps (
	otp_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	call_sid TEXT NOT NULL,
	to_number TEXT NOT NULL,
	reference TEXT,
	code_hash TEXT,
	attempts BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	verified_at BIGINT,
	CONSTRAINT pk_otps PRIMARY KEY (otp_id),
	CONSTRAINT fk_otps_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_otps_call_sid UNIQUE (call_sid)
);
CREATE TABLE phone_numbers (
	phone_number_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	number TEXT NOT NULL,
	friendly_name TEXT,
	status TEXT NOT NULL,
	number_type TEXT NOT NULL,
	voice_enabled BOOLEAN NOT NULL,
	sms_enabled BOOLEAN NOT NULL,
	monthly_cost_paise BIGINT NOT NULL,
	carrier_sid TEXT,
	app_sid TEXT,
	registered BOOLEAN NOT NULL,
	binding TEXT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	deleted_at BIGINT,
	revision BIGINT NOT NULL, region TEXT, order_id TEXT, billing_anchor_at BIGINT, paid_months BIGINT, next_billing_at BIGINT, payment_deadline_at BIGINT,
	CONSTRAINT pk_phone_numbers PRIMARY KEY (phone_number_id),
	CONSTRAINT fk_phone_numbers_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT fk_phone_numbers_carrier_sid FOREIGN KEY(carrier_sid) REFERENCES carriers (carrier_sid)
);
CREATE TABLE recording_removals (
	call_sid TEXT NOT NULL,
	node TEXT NOT NULL,
	path TEXT NOT NULL, object TEXT,
	CONSTRAINT pk_recording_removals PRIMARY KEY (call_sid)
);
CREATE TABLE recording_uploads (
	sid TEXT NOT NULL,
	call_sid TEXT NOT NULL,
	node TEXT NOT NULL,
	object TEXT NOT NULL,
	details TEXT NOT NULL,
	CONSTRAINT pk_recording_uploads PRIMARY KEY (sid)
);
CREATE TABLE reserves (
	call_sid TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	amount_paise BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_reserves PRIMARY KEY (call_sid),
	CONSTRAINT fk_reserves_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
)
 WITHOUT ROWID
;
CREATE TABLE schema_compatibility (
	id INTEGER NOT NULL,
	oldest TEXT NOT NULL,
	CONSTRAINT pk_schema_compatibility PRIMARY KEY (id)
);
CREATE TABLE secret_check (
	id INTEGER NOT NULL,
	sealed TEXT NOT NULL,
	CONSTRAINT pk_secret_check PRIMARY KEY (id)
);
CREATE TABLE template_withdrawals (
	reference TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	network_ref TEXT,
	due_at BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_template_withdrawals PRIMARY KEY (reference),
	CONSTRAINT fk_template_withdrawals_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE templates (
	template_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_sid TEXT NOT NULL,
	reference TEXT NOT NULL,
	name TEXT NOT NULL,
	language TEXT NOT NULL,
	category TEXT NOT NULL,
	body TEXT NOT NULL,
	variables BIGINT NOT NULL,
	status TEXT NOT NULL,
	network_ref TEXT,
	rejection_reason TEXT,
	check_at BIGINT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT fk_templates_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE tool_changes (
	account_sid TEXT NOT NULL,
	revision BIGINT NOT NULL,
	CONSTRAINT pk_tool_changes PRIMARY KEY (account_sid),
	CONSTRAINT fk_tool_changes_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE tool_usage (
	account_sid TEXT NOT NULL,
	day TEXT NOT NULL,
	tool TEXT NOT NULL,
	key_id TEXT NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	total_ms BIGINT NOT NULL,
	max_ms BIGINT NOT NULL,
	CONSTRAINT pk_tool_usage PRIMARY KEY (account_sid, day, tool, key_id),
	CONSTRAINT fk_tool_usage_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE tools (
	tool_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	name TEXT NOT NULL,
	definition TEXT NOT NULL,
	headers TEXT,
	secret TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT pk_tools PRIMARY KEY (tool_id),
	CONSTRAINT fk_tools_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_tools_account_sid_name UNIQUE (account_sid, name)
);
CREATE TABLE transcript_segments (
	call_sid TEXT NOT NULL,
	number BIGINT NOT NULL,
	account_sid TEXT NOT NULL,
	role TEXT NOT NULL,
	text TEXT NOT NULL,
	start_ms BIGINT NOT NULL,
	end_ms BIGINT,
	CONSTRAINT pk_transcript_segments PRIMARY KEY (call_sid, number),
	CONSTRAINT fk_transcript_segments_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE trunk_legs (
	leg TEXT NOT NULL,
	sid TEXT NOT NULL,
	node TEXT NOT NULL,
	CONSTRAINT pk_trunk_legs PRIMARY KEY (leg, sid)
)
 WITHOUT ROWID
;
CREATE TABLE trunk_paces (
	sid TEXT NOT NULL,
	paced_until BIGINT NOT NULL,
	CONSTRAINT pk_trunk_paces PRIMARY KEY (sid)
)
 WITHOUT ROWID
;
CREATE TABLE wallets (
	account_sid TEXT NOT NULL,
	balance_paise BIGINT NOT NULL,
	reserved_paise BIGINT NOT NULL,
	updated_at BIGINT NOT NULL, spent_hour BIGINT DEFAULT '0' NOT NULL, spent_paise BIGINT DEFAULT '0' NOT NULL, paced_until BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_wallets PRIMARY KEY (account_sid),
	CONSTRAINT ck_wallets_balance CHECK (balance_paise >= reserved_paise),
	CONSTRAINT ck_wallets_reserved CHECK (reserved_paise >= 0),
	CONSTRAINT fk_wallets_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
)
 WITHOUT ROWID
;
CREATE TABLE webhook_deliveries (
	position INTEGER NOT NULL,
	delivery_id TEXT NOT NULL,
	event_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	call_sid TEXT,
	event TEXT NOT NULL,
	method TEXT NOT NULL,
	url TEXT NOT NULL,
	body BLOB NOT NULL,
	status TEXT NOT NULL,
	attempts BIGINT NOT NULL,
	next_attempt_at BIGINT NOT NULL,
	node TEXT NOT NULL,
	leased_until BIGINT NOT NULL,
	response_code BIGINT NOT NULL,
	last_error TEXT,
	created_at BIGINT NOT NULL,
	delivered_at BIGINT, subscription_id TEXT,
	CONSTRAINT pk_webhook_deliveries PRIMARY KEY (position),
	CONSTRAINT fk_webhook_deliveries_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_webhook_deliveries_delivery_id UNIQUE (delivery_id)
);
CREATE TABLE webhook_endpoints (
	endpoint_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	subscription_id TEXT NOT NULL,
	CONSTRAINT fk_webhook_endpoints_subscription_id FOREIGN KEY(subscription_id) REFERENCES webhook_subscriptions (subscription_id),
	CONSTRAINT uq_webhook_endpoints_subscription_id UNIQUE (subscription_id)
);
CREATE TABLE webhook_subscriptions (
	subscription_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	service TEXT NOT NULL,
	url TEXT NOT NULL,
	secret TEXT,
	event_types TEXT NOT NULL,
	description TEXT,
	is_active BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT pk_webhook_subscriptions PRIMARY KEY (subscription_id),
	CONSTRAINT fk_webhook_subscriptions_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE writer_probe (
	node TEXT NOT NULL,
	probed_at BIGINT NOT NULL,
	CONSTRAINT pk_writer_probe PRIMARY KEY (node)
);
