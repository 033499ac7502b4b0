package heedtest

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// clientKey stands for a key without holding it: keys are credentials.
type clientKey [16]byte

// clientName is what reports call the client: the same in every run, so that
// golden files can hold it, and too short to lead back to the credential.
func clientName(key string) (clientKey, string) {
	sum := sha256.Sum256([]byte(key))
	if key == "" {
		return clientKey(sum[:16]), "anonymous"
	}
	return clientKey(sum[:16]), hex.EncodeToString(sum[:4])
}

// client finds or makes the client of a key. The limiter is made outside the
// lock, because making it is the user's code.
func (s *Server) client(key string) *client {
	k, name := clientName(key)
	if c := s.seen(k, nil); c != nil {
		return c
	}
	fresh := &client{key: k, count: ClientCount{Client: name}}
	if s.Limit != nil {
		fresh.core = s.Limit()
	}
	return s.seen(k, fresh)
}

// seen is the client of k, moved to the front. If there is none, fresh
// becomes it, and the one silent the longest makes room.
func (s *Server) seen(k clientKey, fresh *client) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.clients[k]; e != nil {
		s.recent.MoveToFront(e)
		return e.Value.(*client)
	}
	if fresh == nil {
		return nil
	}
	if s.clients == nil {
		s.clients = make(map[clientKey]*list.Element)
	}
	most := s.MaxClients
	if most <= 0 {
		most = DefaultMaxClients
	}
	for s.recent.Len() >= most {
		last := s.recent.Back()
		delete(s.clients, s.recent.Remove(last).(*client).key)
	}
	s.clients[k] = s.recent.PushFront(fresh)
	return fresh
}

// clip bounds a string that is kept, and lets go of the longer one it was cut
// from: a path is a part of a URL with a query.
func clip(s string, most int) string { return strings.Clone(s[:min(len(s), most)]) }
