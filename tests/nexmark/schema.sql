-- The tables of the Nexmark benchmark. A bid has no key, and may come twice.
CREATE TABLE person (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    email_address text NOT NULL,
    credit_card text NOT NULL,
    city text NOT NULL,
    state text NOT NULL,
    date_time timestamp NOT NULL,
    extra text
);
CREATE TABLE auction (
    id bigint PRIMARY KEY,
    item_name text NOT NULL,
    description text NOT NULL,
    initial_bid bigint NOT NULL,
    reserve bigint NOT NULL,
    date_time timestamp NOT NULL,
    expires timestamp NOT NULL,
    seller bigint NOT NULL,
    category bigint NOT NULL,
    extra text
);
CREATE TABLE bid (
    auction bigint NOT NULL,
    bidder bigint NOT NULL,
    price bigint NOT NULL,
    channel text NOT NULL,
    url text NOT NULL,
    date_time timestamp NOT NULL,
    extra text
);
CREATE TABLE side_input (
    key bigint PRIMARY KEY,
    value text NOT NULL
);
CREATE INDEX ON auction (seller);
CREATE INDEX ON bid (auction);
CREATE INDEX ON bid (bidder);
