-- One round of changes beside the new rows; :round is its number, counted from 1.
DELETE FROM bid WHERE price = 100 + 10 * :round;
DELETE FROM bid WHERE auction = 3 * :round;
DELETE FROM bid WHERE date_time BETWEEN '2026-01-01 06:00'
    AND timestamp '2026-01-01 06:00' + :round * interval '2 minutes';
UPDATE bid SET price = price + 200 WHERE price % 170 = 10 * :round;
UPDATE bid SET auction = auction + 1 WHERE auction % 19 = :round;
UPDATE bid SET bidder = 1 + bidder % 7, date_time = date_time + interval '7 minutes' WHERE bidder % 11 = :round;
UPDATE bid SET channel = 'apple', url = replace(url, 'item', 'thing') WHERE channel = 'channel-7' AND price > 850;
UPDATE bid SET extra = 'c' || :round WHERE price = 500 + 10 * :round;
DELETE FROM auction WHERE id % 13 = :round;
UPDATE auction SET category = 10 + (category + 1) % 4 WHERE id % 9 = :round;
UPDATE auction SET expires = expires + interval '45 minutes', reserve = reserve / 2 WHERE id % 8 = :round;
UPDATE auction SET seller = seller + 1 WHERE id % 7 = :round;
UPDATE auction SET id = id + 1000 WHERE id % 23 = :round;
DELETE FROM person WHERE id % 17 = :round;
UPDATE person SET state = 'CA', city = 'San Jose' WHERE id % 12 = :round;
UPDATE person SET name = 'renamed ' || :round, date_time = date_time - interval '20 minutes' WHERE id % 10 = :round;
UPDATE person SET id = id + 1000 WHERE id % 29 = :round;
DELETE FROM side_input WHERE key = (:round - 1) % 5;
INSERT INTO side_input VALUES ((:round + 3) % 5, 'new ' || :round);
UPDATE side_input SET value = value || '!' WHERE key % 2 = :round % 2;
