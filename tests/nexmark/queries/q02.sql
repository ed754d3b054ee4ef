-- Selection; every 7th auction, where the benchmark takes every 123rd
SELECT auction, price FROM bid WHERE auction % 7 = 0
