CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE accounts (
	account_sid TEXT NOT NULL,
	name TEXT NOT NULL,
	is_active BOOLEAN NOT NULL,
	kyc_complete BOOLEAN NOT NULL,
	max_cps BIGINT NOT NULL,
	max_calls BIGINT NOT NULL,
	webhook_secret TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	revision BIGINT NOT NULL, requests_per_minute BIGINT, max_spend_paise_per_hour BIGINT, recording_retention_days BIGINT, stream_protocol TEXT, stream_secret TEXT, stream_signed_since BIGINT, former_stream_secret TEXT, former_signature_until BIGINT, assistant_requests_per_minute BIGINT, former_webhook_secret TEXT, former_webhook_until BIGINT,
	CONSTRAINT pk_accounts PRIMARY KEY (account_sid)
);
CREATE TABLE directory_revision (
	id INTEGER NOT NULL,
	revision BIGINT NOT NULL,
	CONSTRAINT pk_directory_revision PRIMARY KEY (id)
);
CREATE TABLE api_keys (
	key_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	service TEXT NOT NULL,
	scopes TEXT NOT NULL,
	prefix TEXT NOT NULL,
	key_hash TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	revoked_at BIGINT, name TEXT, environment TEXT,
	CONSTRAINT pk_api_keys PRIMARY KEY (key_id),
	CONSTRAINT fk_api_keys_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_api_keys_key_hash UNIQUE (key_hash)
);
CREATE TABLE carriers (
	carrier_sid TEXT NOT NULL,
	account_sid TEXT,
	name TEXT NOT NULL,
	description TEXT,
	is_active BOOLEAN NOT NULL,
	trunk_type TEXT NOT NULL,
	e164_leading_plus BOOLEAN NOT NULL,
	tech_prefix TEXT,
	requires_register BOOLEAN NOT NULL,
	register_username TEXT,
	register_password TEXT,
	register_sip_realm TEXT,
	register_from_user TEXT,
	register_from_domain TEXT,
	register_transport TEXT,
	inbound_auth_username TEXT,
	inbound_auth_password TEXT,
	outbound_proxy TEXT,
	diversion TEXT,
	dtmf_type TEXT NOT NULL,
	codecs TEXT NOT NULL,
	prefixes TEXT NOT NULL,
	srtp TEXT NOT NULL,
	max_concurrent_calls BIGINT,
	max_cps BIGINT,
	app_sid TEXT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	deleted_at BIGINT,
	revision BIGINT NOT NULL, number_format TEXT DEFAULT 'e164' NOT NULL, identity_header TEXT DEFAULT 'pai' NOT NULL, trusts_identity BOOLEAN DEFAULT 1 NOT NULL, forwards_history BOOLEAN DEFAULT 0 NOT NULL, forwarded_headers TEXT DEFAULT '' NOT NULL, allows_refer BOOLEAN DEFAULT 0 NOT NULL, follows_redirects BOOLEAN DEFAULT 0 NOT NULL, rel100 TEXT DEFAULT 'supported' NOT NULL, registrars TEXT DEFAULT '' NOT NULL, register_expires_s BIGINT DEFAULT '3600' NOT NULL, session_expires_s BIGINT, certificate_name TEXT,
	CONSTRAINT pk_carriers PRIMARY KEY (carrier_sid),
	CONSTRAINT fk_carriers_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE gateways (
	gateway_sid TEXT NOT NULL,
	carrier_sid TEXT NOT NULL,
	host TEXT NOT NULL,
	port BIGINT NOT NULL,
	netmask BIGINT NOT NULL,
	protocol TEXT NOT NULL,
	inbound BOOLEAN NOT NULL,
	outbound BOOLEAN NOT NULL,
	priority BIGINT NOT NULL,
	weight BIGINT NOT NULL,
	send_options_ping BOOLEAN NOT NULL,
	is_active BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	deleted_at BIGINT,
	revision BIGINT NOT NULL, max_concurrent_calls BIGINT, max_cps BIGINT,
	CONSTRAINT pk_gateways PRIMARY KEY (gateway_sid),
	CONSTRAINT fk_gateways_carrier_sid FOREIGN KEY(carrier_sid) REFERENCES carriers (carrier_sid)
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
CREATE TABLE calls (
	call_sid TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	parent_call_sid TEXT,
	direction TEXT NOT NULL,
	from_number TEXT NOT NULL,
	to_number TEXT NOT NULL,
	status TEXT NOT NULL,
	answered_by TEXT,
	carrier_sid TEXT,
	gateway_sid TEXT,
	phone_number_id TEXT,
	app_sid TEXT,
	stream TEXT,
	created_at BIGINT NOT NULL,
	ringing_at BIGINT,
	answered_at BIGINT,
	ended_at BIGINT,
	duration_sec BIGINT,
	bill_duration_sec BIGINT,
	hangup_cause TEXT,
	hangup_cause_code BIGINT,
	hangup_source TEXT,
	sip_status BIGINT,
	sip_reason TEXT,
	sip_call_id TEXT,
	price_paise BIGINT,
	currency TEXT NOT NULL,
	recording_url TEXT,
	recording_path TEXT,
	quality TEXT,
	tag TEXT,
	status_webhook_url TEXT,
	status_webhook_events TEXT,
	sequence BIGINT NOT NULL,
	node TEXT NOT NULL, sip TEXT, recording_status TEXT, product TEXT, details TEXT, outcome TEXT, dialogs TEXT,
	CONSTRAINT pk_calls PRIMARY KEY (call_sid),
	CONSTRAINT fk_calls_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
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
CREATE TABLE ledger (
	entry_id INTEGER NOT NULL,
	account_sid TEXT NOT NULL,
	kind TEXT NOT NULL,
	amount_paise BIGINT NOT NULL,
	call_sid TEXT,
	reference TEXT,
	note TEXT,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_ledger PRIMARY KEY (entry_id),
	CONSTRAINT fk_ledger_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
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
	delivered_at BIGINT, subscription_id TEXT, attempt_log TEXT,
	CONSTRAINT pk_webhook_deliveries PRIMARY KEY (position),
	CONSTRAINT fk_webhook_deliveries_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_webhook_deliveries_delivery_id UNIQUE (delivery_id)
);
CREATE TABLE idempotency_keys (
	account_sid TEXT NOT NULL,
	"key" TEXT NOT NULL,
	endpoint TEXT NOT NULL,
	body_hash TEXT NOT NULL,
	status INTEGER,
	body BLOB,
	created_at BIGINT NOT NULL, node TEXT, effect TEXT,
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (account_sid, "key"),
	CONSTRAINT fk_idempotency_keys_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE writer_probe (
	node TEXT NOT NULL,
	probed_at BIGINT NOT NULL,
	CONSTRAINT pk_writer_probe PRIMARY KEY (node)
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
CREATE TABLE applications (
	app_sid TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	name TEXT NOT NULL,
	binding TEXT NOT NULL,
	record_all_calls BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	deleted_at BIGINT,
	revision BIGINT NOT NULL,
	CONSTRAINT pk_applications PRIMARY KEY (app_sid),
	CONSTRAINT fk_applications_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE agents (
	agent_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	workspace_id TEXT,
	name TEXT NOT NULL,
	language TEXT NOT NULL,
	voice TEXT,
	greeting TEXT,
	instructions TEXT,
	binding TEXT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	deleted_at BIGINT,
	revision BIGINT NOT NULL, script TEXT,
	CONSTRAINT pk_agents PRIMARY KEY (agent_id),
	CONSTRAINT fk_agents_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
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
CREATE TABLE secret_check (
	id INTEGER NOT NULL,
	sealed TEXT NOT NULL,
	CONSTRAINT pk_secret_check PRIMARY KEY (id)
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
CREATE TABLE masked_calls (
	call_sid TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	session_id TEXT,
	direction TEXT NOT NULL,
	caller_number TEXT NOT NULL,
	target_number TEXT,
	status TEXT NOT NULL,
	outcome TEXT,
	connected BOOLEAN NOT NULL,
	bill_duration_sec BIGINT,
	price_paise BIGINT,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_masked_calls PRIMARY KEY (call_sid),
	CONSTRAINT fk_masked_calls_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE masking_settings (
	account_sid TEXT NOT NULL,
	subscription_id TEXT,
	routing_url TEXT,
	record_calls BOOLEAN NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT pk_masking_settings PRIMARY KEY (account_sid),
	CONSTRAINT fk_masking_settings_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE masking_sessions (
	session_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	party_a TEXT NOT NULL,
	party_b TEXT NOT NULL,
	masked_number TEXT NOT NULL,
	call_time_limit_sec BIGINT,
	record BOOLEAN,
	geo_match BOOLEAN NOT NULL,
	expires_at BIGINT NOT NULL,
	ended TEXT,
	ended_at BIGINT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT pk_masking_sessions PRIMARY KEY (session_id),
	CONSTRAINT fk_masking_sessions_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE masking_mappings (
	session_id TEXT NOT NULL,
	caller_number TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	masked_number TEXT NOT NULL,
	target_number TEXT NOT NULL,
	ended_at BIGINT,
	CONSTRAINT pk_masking_mappings PRIMARY KEY (session_id, caller_number),
	CONSTRAINT fk_masking_mappings_session_id FOREIGN KEY(session_id) REFERENCES masking_sessions (session_id),
	CONSTRAINT fk_masking_mappings_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
)
 WITHOUT ROWID
;
CREATE TABLE recording_removals (
	call_sid TEXT NOT NULL,
	node TEXT NOT NULL,
	path TEXT NOT NULL, object TEXT,
	CONSTRAINT pk_recording_removals PRIMARY KEY (call_sid)
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
CREATE TABLE assistant_calls (
	call_sid TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	direction TEXT NOT NULL,
	phone_number TEXT NOT NULL,
	sandbox BOOLEAN NOT NULL,
	status TEXT NOT NULL,
	outcome TEXT,
	duration_sec BIGINT,
	price_paise BIGINT,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_assistant_calls PRIMARY KEY (call_sid),
	CONSTRAINT fk_assistant_calls_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE messages (
	message_sid TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	call_sid TEXT NOT NULL,
	node TEXT NOT NULL,
	path TEXT,
	duration_ms BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_messages PRIMARY KEY (message_sid),
	CONSTRAINT fk_messages_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
