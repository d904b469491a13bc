// Package pluginpb is the wire contract between gateway and plugin: the file
// provider.proto and what is generated from it. Only package sdk converts its
// messages; nobody else handles them, and plugin authors never see them. It
// must hold no code that is written by hand.
package pluginpb
