package dev

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// lookEvery is how often it is looked whether a developer's own plugin was built anew.
const lookEvery = 500 * time.Millisecond

// renewWithin is how long a simulator that was built anew may take to answer.
const renewWithin = 10 * time.Second

// withOwn puts a developer's own plugins before the others, so that they are the first
// for what several providers may serve, and leaves those of the others out that can't be
// offered beside them.
func withOwn(ctx context.Context, paths []string, others []plugin, log *slog.Logger) ([]plugin, error) {
	if len(paths) == 0 {
		return others, nil
	}
	var own []plugin
	for _, path := range paths {
		whole, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		sum, err := host.SHA256File(whole)
		if err != nil {
			return nil, fmt.Errorf("--plugin %s: %w", path, err)
		}
		own = append(own, plugin{name: filepath.Base(whole), path: whole, sha256: sum, own: true})
	}
	others = slices.DeleteFunc(others, func(p plugin) bool { return slices.ContainsFunc(own, func(o plugin) bool { return o.name == p.name }) })
	all := append(own, others...)
	manifests, err := describe(ctx, all)
	if err != nil {
		return nil, err
	}
	var offered []*manifest.Manifest
	for _, o := range own {
		offered = append(offered, manifests[o.name])
	}
	if _, err := catalog.Build(offered); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p plugin) bool {
		if p.own {
			return false
		}
		together := append(slices.Clone(offered), manifests[p.name])
		if _, err := catalog.Build(together); err != nil {
			log.Info("a plugin is left out, beside one of your own", "plugin", p.name, "why", err)
			return true
		}
		offered = together
		return false
	}), nil
}

// describe asks plugins for their manifests.
func describe(ctx context.Context, plugins []plugin) (map[string]*manifest.Manifest, error) {
	specs := make([]host.Spec, len(plugins))
	for i, p := range plugins {
		specs[i] = host.Spec{Name: p.name, Path: p.path, SHA256: p.sha256}
	}
	asked, err := host.Start(ctx, host.Config{Specs: specs})
	if err != nil {
		return nil, err
	}
	defer func() { _ = asked.Close(context.WithoutCancel(ctx)) }() // nothing was asked of them but this
	if err := asked.Down(); err != nil {
		return nil, fmt.Errorf("%w; the file of a plugin has its provider's name, and gerbang plugin check judges its manifest", err)
	}
	manifests := map[string]*manifest.Manifest{}
	for _, m := range asked.Manifests() {
		manifests[m.Name] = m
	}
	return manifests, nil
}

// renew has the simulator go on from its file too, and waits until it answers. One that
// does not is started again and again, as whenever one ends.
func (s *simulator) renew(ctx context.Context) {
	select {
	case s.renewed <- struct{}{}:
	default: // it is told already
	}
	s.End() // its supervisor starts the next one
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	for {
		if _, err := s.Control(ctx, "describe", nil, nil); err == nil || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// swap has a developer's own plugin go on from its file whenever that was built anew,
// after its simulator, and connects the demo merchants to it. One that does not start is
// told, and the last one stays.
func (t *tree) swap(ctx context.Context, s *simulator, replace func(ctx context.Context, p plugin) error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	used, before := s.plugin.sha256, ""
	var seen os.FileInfo // of a file that is in use
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		info, err := os.Stat(s.plugin.path)
		if err == nil && seen != nil && os.SameFile(info, seen) && info.ModTime().Equal(seen.ModTime()) && info.Size() == seen.Size() {
			continue // reading all of it twice a second costs a twentieth of a processor
		}
		seen = nil
		now, err := host.SHA256File(s.plugin.path)
		if err != nil || now == used || now != before { // it is being written, or was seen for the first time
			if now == used && before == used {
				seen = info
			}
			before = now
			continue
		}
		used = now
		next := s.plugin
		next.sha256 = now
		s.renew(ctx)
		if err := replace(ctx, next); err != nil {
			t.Log.Error("the plugin that was built anew is not used, the one before stays", "plugin", next.name, "error", strings.TrimSpace(err.Error()))
			continue
		}
		if err := t.reconnect(ctx, s); err != nil {
			t.Log.Error("the plugin was built anew and is used, but the demo merchants can't be connected to it: "+
				"have its simulator's connect answer what the manifest's connection asks for, and build again",
				"plugin", next.name, "error", strings.TrimSpace(err.Error()))
			continue
		}
		t.Log.Info("the plugin was built anew and is used", "plugin", next.name)
	}
}
