// Package pluginpb is the wire contract between gateway and plugin: the file
// provider.proto and the code generated from it. Only package sdk uses its
// messages; plugin authors never see them. It must hold no code that is written
// by hand.
package pluginpb
