-- After everything was revoked that somebody else had been granted, the group roles get theirs again.
DO $$ BEGIN PERFORM pgtrickle_private.grant_to_groups(); END $$;
