-- One row a lease; rows are never deleted, so fence_token only ever grows.
-- Names and owners compare byte by byte (utf8mb4_bin). Explicit defaults keep
-- the server from adding ON UPDATE CURRENT_TIMESTAMP to the first TIMESTAMP.
CREATE TABLE IF NOT EXISTS {{table}} (
  lease_name   VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  owner_token  VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  fence_token  BIGINT UNSIGNED NOT NULL,
  leased_until TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  acquired_at  TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  renewed_at   TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  renewals     BIGINT UNSIGNED NOT NULL DEFAULT 0,
  metadata     VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (lease_name)
) ENGINE=InnoDB
