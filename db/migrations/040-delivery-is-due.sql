-- Its place is taken by delivery_is_due_in_turn.
drop index core.delivery_is_due;
