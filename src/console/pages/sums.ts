/** The columns of a table of volumes, over a view of days or of the lines of a statement. */
export const sums = `sum(redemption_count) as redemptions, sum(redemption_amount) as redeemed,
       sum(reversal_count) as reversals, sum(reversal_amount) as reversed, sum(net_amount) as net`;
