\set account random(1, 100000 * :scale)
\set branch random(1, :scale)
\set amount random(-5000, 5000)
\set kind random(1, 10)
\if :kind <= 4
SELECT abalance FROM pgbench_accounts WHERE aid = :account;
\elif :kind <= 7
UPDATE pgbench_accounts SET abalance = abalance + :amount WHERE aid = :account;
\elif :kind <= 9
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :account, :amount, now());
\else
SELECT count(*), sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :account AND :account + 100;
\endif
