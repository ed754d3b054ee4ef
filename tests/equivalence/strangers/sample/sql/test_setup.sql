-- What every script of the sample begins with.
\getenv directory PG_ABS_SRCDIR
CREATE TABLE parcels (id int, depot text, weight numeric);
COPY parcels FROM stdin;
1	north	2.5
2	north	7
3	south	0.5
4	\N	1
6	west	3
5	west	3
\.
