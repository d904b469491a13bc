// Package past owns reading what was decided: it joins the log of decisions with movements, merchants' records and policy
// versions, a minute at a time, in the order of time. It must not decide anything, and changes nothing. The simulation of
// other decisions is package impact's.
package past
