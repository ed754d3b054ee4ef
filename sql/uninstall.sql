-- Removes pytrickle. Dropping the trigger functions drops the triggers on users' tables with them. Stream tables stay
-- behind as plain tables with the rows they had; views of users that call functions of pytrickle go with those.
SET LOCAL client_min_messages = warning;
DROP SCHEMA IF EXISTS pgtrickle_state CASCADE;
DROP SCHEMA IF EXISTS pgtrickle_changes CASCADE;
DROP SCHEMA IF EXISTS pgtrickle_sinks CASCADE;
DROP SCHEMA IF EXISTS pgtrickle CASCADE;
