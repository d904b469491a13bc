-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS list_heads (
    id INT8 NOT NULL,
    version INT8 NOT NULL,
    CONSTRAINT list_heads_pkey PRIMARY KEY (id)
);
