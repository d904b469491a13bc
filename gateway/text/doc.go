// Package text owns what is said to people in two languages: the catalogue of every text of the consoles, payers' pages and
// documents, with the names of the months. The English of a text stands where it is said and is its key; id.json has its
// Indonesian. Tests find a text that is not in it, and one that nothing says. Whole documents stand beside what sends
// them: mails in mail/texts, guides in docs/page.
//
// It must not know who says a text. What a merchant's program reads is English alone, as the contract has it.
package text
