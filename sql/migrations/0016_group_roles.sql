-- The group roles that an install with roles created. Run once and never edited afterwards.
CREATE TABLE pgtrickle.pgt_group_roles (
    purpose text PRIMARY KEY CHECK (purpose IN ('reader', 'loader', 'operator', 'owner')),
    role_name text NOT NULL,
    role_oid oid NOT NULL
);
COMMENT ON TABLE pgtrickle.pgt_group_roles IS
    'Group roles that were created by an install with roles. Another role of that name, made later or in another cluster, is none of them.';
COMMENT ON COLUMN pgtrickle.pgt_group_roles.purpose IS 'reader, loader, operator or owner.';
COMMENT ON COLUMN pgtrickle.pgt_group_roles.role_name IS 'Name of the role.';
COMMENT ON COLUMN pgtrickle.pgt_group_roles.role_oid IS 'Number of the role in this cluster.';
