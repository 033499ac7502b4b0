// Package limiter holds the five classic rate limiters as pure cores, and the locks that make them safe to share.
package limiter
