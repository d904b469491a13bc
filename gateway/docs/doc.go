// Package docs owns the documents that merchants read on the merchants' listener: the page
// that shows the API and tries it, made of Swagger UI, and the guides. All are rendered
// once, at the start, from what is embedded, and load nothing from elsewhere. The package
// must not know merchants, requests or the database; it names what it serves, and how a
// browser may treat it, and the edge serves it.
package docs
