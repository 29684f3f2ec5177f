CREATE TABLE chat_messages (
	message_id TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	direction TEXT NOT NULL,
	from_number TEXT NOT NULL,
	to_number TEXT NOT NULL,
	type TEXT NOT NULL,
	content TEXT NOT NULL,
	status TEXT NOT NULL,
	campaign_id BIGINT,
	network_ref TEXT,
	error_code TEXT,
	error_message TEXT,
	created_at BIGINT NOT NULL,
	due_at BIGINT NOT NULL,
	sent_at BIGINT,
	delivered_at BIGINT,
	read_at BIGINT,
	failed_at BIGINT,
	node TEXT NOT NULL,
	leased_until BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	CONSTRAINT pk_chat_messages PRIMARY KEY (message_id),
	CONSTRAINT fk_chat_messages_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE chat_paces (
	account_sid TEXT NOT NULL,
	reached_at BIGINT NOT NULL,
	CONSTRAINT pk_chat_paces PRIMARY KEY (account_sid),
	CONSTRAINT fk_chat_paces_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE channels (
	account_sid TEXT NOT NULL,
	number TEXT,
	display_name TEXT,
	is_connected BOOLEAN NOT NULL,
	messages_per_second BIGINT,
	updated_at BIGINT NOT NULL,
	CONSTRAINT pk_channels PRIMARY KEY (account_sid),
	CONSTRAINT fk_channels_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
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
CREATE TABLE template_withdrawals (
	reference TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	network_ref TEXT,
	due_at BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_template_withdrawals PRIMARY KEY (reference),
	CONSTRAINT fk_template_withdrawals_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE campaigns (
	campaign_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	reference TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	name TEXT NOT NULL,
	template_id BIGINT NOT NULL,
	template_name TEXT NOT NULL,
	language TEXT NOT NULL,
	body_parameters TEXT NOT NULL,
	state TEXT NOT NULL,
	total BIGINT NOT NULL,
	made BIGINT NOT NULL,
	recipients TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	starts_at BIGINT NOT NULL,
	scheduled_for BIGINT,
	started_at BIGINT,
	handed_at BIGINT,
	ended_at BIGINT,
	CONSTRAINT fk_campaigns_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_campaigns_reference UNIQUE (reference)
);
CREATE TABLE contacts (
	contact_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_sid TEXT NOT NULL,
	made_by TEXT,
	phone_number TEXT NOT NULL,
	first_name TEXT,
	last_name TEXT,
	email TEXT,
	custom_fields TEXT,
	notes TEXT,
	opted_out BOOLEAN NOT NULL,
	search_text TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT fk_contacts_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_contacts_account_sid_phone_number UNIQUE (account_sid, phone_number)
);
CREATE TABLE contact_lists (
	list_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_sid TEXT NOT NULL,
	made_by TEXT NOT NULL,
	name TEXT NOT NULL,
	description TEXT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT fk_contact_lists_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid),
	CONSTRAINT uq_contact_lists_made_by UNIQUE (made_by)
);
CREATE TABLE contact_list_members (
	list_id BIGINT NOT NULL,
	contact_id BIGINT NOT NULL,
	CONSTRAINT pk_contact_list_members PRIMARY KEY (list_id, contact_id),
	CONSTRAINT fk_contact_list_members_contact_id FOREIGN KEY(contact_id) REFERENCES contacts (contact_id) ON DELETE CASCADE,
	CONSTRAINT fk_contact_list_members_list_id FOREIGN KEY(list_id) REFERENCES contact_lists (list_id) ON DELETE CASCADE
);
CREATE TABLE webhook_endpoints (
	endpoint_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	subscription_id TEXT NOT NULL,
	CONSTRAINT fk_webhook_endpoints_subscription_id FOREIGN KEY(subscription_id) REFERENCES webhook_subscriptions (subscription_id),
	CONSTRAINT uq_webhook_endpoints_subscription_id UNIQUE (subscription_id)
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
CREATE TABLE disabled_tools (
	account_sid TEXT NOT NULL,
	name TEXT NOT NULL,
	CONSTRAINT pk_disabled_tools PRIMARY KEY (account_sid, name),
	CONSTRAINT fk_disabled_tools_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
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
CREATE TABLE former_dialogs (
	call_sid TEXT NOT NULL,
	node TEXT NOT NULL,
	dialogs TEXT NOT NULL,
	CONSTRAINT pk_former_dialogs PRIMARY KEY (call_sid)
)
 WITHOUT ROWID
;
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
CREATE TABLE duties (
	duty TEXT NOT NULL,
	node TEXT NOT NULL,
	CONSTRAINT pk_duties PRIMARY KEY (duty)
);
CREATE TABLE recording_uploads (
	sid TEXT NOT NULL,
	call_sid TEXT NOT NULL,
	node TEXT NOT NULL,
	object TEXT NOT NULL,
	details TEXT NOT NULL,
	CONSTRAINT pk_recording_uploads PRIMARY KEY (sid)
);
CREATE TABLE conferences (
	account_sid TEXT NOT NULL,
	name TEXT NOT NULL,
	node TEXT NOT NULL,
	CONSTRAINT pk_conferences PRIMARY KEY (account_sid, name)
);
CREATE TABLE console_sessions (
	token_hash TEXT NOT NULL,
	kind TEXT NOT NULL,
	key_id TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	CONSTRAINT pk_console_sessions PRIMARY KEY (token_hash),
	CONSTRAINT fk_console_sessions_key_id_api_keys FOREIGN KEY(key_id) REFERENCES api_keys (key_id)
);
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
CREATE TABLE schema_compatibility (
	id INTEGER NOT NULL,
	oldest TEXT NOT NULL,
	CONSTRAINT pk_schema_compatibility PRIMARY KEY (id)
);
CREATE TABLE operator_sessions (
	token_hash TEXT NOT NULL,
	kind TEXT NOT NULL,
	operator TEXT NOT NULL,
	account_sid TEXT,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	CONSTRAINT pk_operator_sessions PRIMARY KEY (token_hash),
	CONSTRAINT fk_operator_sessions_account_sid_accounts FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE operator_actions (
	position INTEGER NOT NULL,
	operator TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	path TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_operator_actions PRIMARY KEY (position),
	CONSTRAINT fk_operator_actions_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
CREATE TABLE call_listeners (
	listener_sid TEXT NOT NULL,
	account_sid TEXT NOT NULL,
	call_sid TEXT NOT NULL,
	listened_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	ended_at BIGINT,
	reason TEXT,
	CONSTRAINT pk_call_listeners PRIMARY KEY (listener_sid),
	CONSTRAINT fk_call_listeners_account_sid FOREIGN KEY(account_sid) REFERENCES accounts (account_sid)
);
