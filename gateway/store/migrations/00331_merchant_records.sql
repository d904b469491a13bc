-- +goose NO TRANSACTION
-- +goose Up
-- Merchants' records as they were at a version, written by the change that replaced them,
-- so that decisions can be understood, and tried again under another policy.
CREATE TABLE IF NOT EXISTS merchant_records (
    merchant_id TEXT NOT NULL,
    version INT8 NOT NULL,
    record TEXT NOT NULL,
    replaced_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT merchant_records_pkey PRIMARY KEY (merchant_id, version)
);
