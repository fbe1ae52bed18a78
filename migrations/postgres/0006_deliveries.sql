-- Deliveries that were taken, by what their copies have in common.
CREATE TABLE deliveries (
  key         TEXT PRIMARY KEY,
  received_ms BIGINT NOT NULL
);
CREATE INDEX deliveries_by_age ON deliveries (received_ms);
