package heed

import (
	"strings"
	"time"
)

// dialect is one row of what no grammar can know of a server: which body or
// field marks a refusal, what kind it is, who shares the limit, how long its
// window is by documentation. All marks that are set must be there.
type dialect struct {
	name   string // of the server or its maker
	says   string // for docs/dialects.md
	source string

	match       string // whose successful answers have their bodies looked at: space-separated patterns
	header      string // a field; with a final * the beginning of its name
	value       string // what stands in the field, in lower case
	code        string // a code in the body
	path        string // a place in the body's JSON, keys divided by slashes
	text        string // what stands in the body's sentences, in lower case
	status      int
	onSuccess   bool // the marks make even a successful answer a refusal, or tell a limit of it
	kind        Kind
	scope       string
	refused     bool
	unit        Unit
	window      time.Duration // from the documentation
	interpreter func(a *Answer, f *facts, ev *evidence, fb *Feedback)
}

// applies says whether all marks of the row are there.
func (d *dialect) applies(a *Answer, f *facts, ev *evidence) bool {
	if a.Status < 400 && !ev.refused && !d.onSuccess || d.status != 0 && d.status != a.Status {
		return false
	}
	if d.header != "" {
		value, ok := "", false
		if prefix, wild := strings.CutSuffix(d.header, "*"); wild {
			for name := range a.Header {
				ok = ok || strings.HasPrefix(name, prefix)
			}
		} else if lines := a.Header[d.header]; len(lines) > 0 {
			value, ok = lines[0], true
		}
		if !ok || d.value != "" && !strings.Contains(strings.ToLower(value[:min(len(value), maxName)]), d.value) {
			return false
		}
	}
	return (d.code == "" || f.coded(d.code)) && (d.path == "" || f.at(d.path) != nil) && (d.text == "" || strings.Contains(f.text, d.text))
}

// apply takes what the row says as evidence.
func (d *dialect) apply(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	ev.clued = true
	ev.scope = first(ev.scope, d.scope)
	if d.refused {
		ev.refused = true
	}
	if d.kind != KindNone && !ev.firm {
		ev.kind, ev.firm = d.kind, true
	}
	for i := range fb.Readings {
		r := &fb.Readings[i]
		if d.unit != "" && r.Limit.Unit == "" {
			r.Limit.Unit = d.unit
		}
		if d.window > 0 && r.Limit.Window == 0 {
			r.Limit.Window = d.window
		}
	}
	if d.interpreter != nil {
		d.interpreter(a, f, ev, fb)
	}
}

// dialects is the table. The first row that names a scope or a kind wins.
var dialects = [...]dialect{
	{name: "AWS", says: "x-amzn-ErrorType or the code in the body (`__type`, `<Code>`) tells throttling at 400, 429 and 503; LimitExceeded at 429 is a usage plan's quota", source: "docs.aws.amazon.com/apigateway, gateway response types", header: "X-Amzn-Errortype", interpreter: awsErrorType},
	{name: "AWS DynamoDB", says: "ProvisionedThroughputExceededException at 400", source: "docs.aws.amazon.com/amazondynamodb, error handling", code: "ProvisionedThroughputExceededException", refused: true, scope: "resource"},
	{name: "AWS EC2", says: "RequestLimitExceeded in XML at 503", source: "docs.aws.amazon.com/ec2, request throttling", code: "RequestLimitExceeded", text: "<code>", refused: true, scope: "operation"},
	{name: "Amazon SP-API", says: "x-amzn-RateLimit-Limit is requests per second", source: "developer-docs.amazon.com/sp-api, usage plans", header: "X-Amzn-Ratelimit-Limit", onSuccess: true, window: time.Second},
	{name: "GitHub", says: "secondary limits, known by their words at 403 and 429, are global; x-ratelimit-resource is the bucket; GraphQL (points) refuses with 200 and RATE_LIMITED", source: "docs.github.com/rest, rate limits", match: "api.github.com/graphql", text: "secondary rate limit", refused: true, kind: KindSecondary, scope: "global"},
	{name: "GitHub, before 2021", says: "abuse detection", source: "docs.github.com/rest, rate limits", text: "abuse-rate-limits", refused: true, kind: KindSecondary, scope: "global"},
	{name: "GitLab", says: "a 429 that leaves units in RateLimit-Remaining is of one endpoint", source: "docs.gitlab.com, rate limits", header: "Ratelimit-Observed", text: "this endpoint has been requested too many times", kind: KindSecondary, scope: "route"},
	{name: "GitLab", says: "RateLimit-Name throttle_* is instance-wide", source: "docs.gitlab.com, user and IP rate limits", header: "Ratelimit-Name", value: "throttle_", scope: "global"},
	{name: "Jira Cloud", says: "RateLimit-Reason names the limiter; *-burst-based is of one route", source: "developer.atlassian.com/cloud/jira, rate limiting", header: "Ratelimit-Reason", value: "burst-based", scope: "route"},
	{name: "Jira and Confluence Cloud", says: "RateLimit-Reason *-quota-* counts points", source: "developer.atlassian.com/cloud/jira, rate limiting", header: "Ratelimit-Reason", value: "-quota-", unit: UnitPoints, interpreter: atlassianQuota},
	{name: "Jira and Confluence Cloud", says: "Beta-RateLimit counts points", source: "developer.atlassian.com/cloud/jira, rate limiting", header: "Beta-Ratelimit-Policy", onSuccess: true, unit: UnitPoints},
	{name: "Docker Hub", says: "docker-ratelimit-source is the address or account that is counted", source: "docs.docker.com, pull usage and limits", header: "Docker-Ratelimit-Source", scope: "ip"},
	{name: "Hugging Face Hub", says: "RateLimit-Policy is a description and a bucket's name, no valid structured field", source: "huggingface.co/docs/hub, rate limits", header: "Ratelimit-Policy", value: `"fixed window"`, scope: "bucket"},
	{name: "Cloudflare API", says: "1,200 requests in 5 minutes are the global limit of a user", source: "developers.cloudflare.com/fundamentals, rate limits", header: "Ratelimit-Policy", value: "q=1200;w=300", scope: "global"},
	{name: "Cloudflare edge", says: "error code 1015 is a site's own rule, by address", source: "developers.cloudflare.com, error 1015", text: "error code: 1015", refused: true, onSuccess: false, kind: KindSecondary, scope: "ip"},
	{name: "Heroku", says: "id rate_limit; the token bucket is of the account", source: "devcenter.heroku.com, platform API, rate limits", header: "Ratelimit-Remaining", code: "rate_limit", scope: "global"},
	{name: "X (Twitter)", says: "the 24-hour caps of app and user trip while X-Rate-Limit-* looks fine", source: "docs.x.com, rate limits", header: "X-App-Limit-24hour-Remaining", kind: KindQuota, scope: "global"},
	{name: "X (Twitter), Okta", says: "X-Rate-Limit-* is of a route; epoch seconds", source: "docs.x.com; developer.okta.com, rate limits", header: "X-Rate-Limit-Reset", scope: "route"},
	{name: "Sentry", says: "X-Sentry-Rate-Limits lists waits by category and scope, also on 200", source: "develop.sentry.dev/sdk, rate limiting", header: "X-Sentry-Rate-Limits", onSuccess: true, refused: true, scope: "category", interpreter: sentry},
	{name: "Discourse", says: "Discourse-Rate-Limit-Error-Code names the limiter", source: "meta.discourse.org, API rate limits", header: "Discourse-Rate-Limit-Error-Code", kind: KindPrimary, scope: "global"},
	{name: "Discord", says: "retry_after (seconds) and global in the body; X-RateLimit-Scope shared is used up by others too", source: "discord.com/developers/docs, rate limits", path: "global", code: "", text: "rate limited", scope: "route"},
	{name: "Meta", says: "usage fields in percent; code 4 is the app's limit", source: "developers.facebook.com/docs/graph-api, rate limiting", path: "error/code", interpreter: meta},
	{name: "Slack", says: `200 with ok:false and error "ratelimited"`, source: "api.slack.com/apis/rate-limits", match: "slack.com/api/", path: "ok", code: "ratelimited", scope: "method"},
	{name: "Telegram", says: "parameters.retry_after, of a chat or the bot", source: "core.telegram.org/bots/api, ResponseParameters", path: "parameters/retry_after", scope: "resource"},
	{name: "Strava", says: "two figures a field: the quarter hour and the UTC day", source: "developers.strava.com/docs/rate-limits", header: "X-Ratelimit-Usage", onSuccess: true, scope: "global", interpreter: strava},
	{name: "Fitbit", says: "150 calls an hour and user", source: "dev.fitbit.com/build/reference/web-api, rate limits", header: "Fitbit-Rate-Limit-Limit", scope: "user"},
	{name: "EVE Online", says: "X-Ratelimit-Used beside X-Ratelimit-Group is what this call cost; 420 is the error limit", source: "developers.eveonline.com, ESI rate limiting", header: "X-Ratelimit-Group", onSuccess: true, interpreter: eve},
	{name: "HackMD", says: "X-RateLimit-User* is the monthly allowance", source: "hackmd.io, developer portal", header: "X-Ratelimit-Userlimit", interpreter: hackmd},
	{name: "LinkedIn", says: "the sentence names application or member and the day", source: "learn.microsoft.com/linkedin, rate limits", text: "limit for calls to this resource is reached", refused: true, kind: KindQuota, scope: "route", interpreter: linkedin},
	{name: "Spotify", says: "an app's rolling 30 seconds", source: "developer.spotify.com, rate limits", path: "error/status", text: "api rate limit exceeded", scope: "app"},
	{name: "Shopify, Jobber and kin", says: "GraphQL refuses with 200 and THROTTLED; extensions.cost tells bucket and refill", source: "shopify.dev/docs/api, rate limits", match: "*.myshopify.com/admin/api/ api.getjobber.com/", path: "extensions/cost/throttleStatus", onSuccess: true, scope: "shop", interpreter: graphqlCost},
	{name: "Linear", says: "GraphQL refuses with 400 and RATELIMITED", source: "linear.app/developers/rate-limiting", match: "api.linear.app/graphql", code: "RATELIMITED", refused: true},
	{name: "monday.com", says: "COMPLEXITY_BUDGET_EXHAUSTED and retry_in_seconds, also with 200", source: "developer.monday.com, rate limits", match: "api.monday.com/", code: "COMPLEXITY_BUDGET_EXHAUSTED", interpreter: monday},
	{name: "Zendesk", says: "zendesk-ratelimit-<endpoint>", source: "developer.zendesk.com, rate limits", header: "Zendesk-Ratelimit-*", scope: "route"},
	{name: "Notion", says: "additional_data.rate_limit_reason; 529 is overload", source: "developers.notion.com, request limits", path: "additional_data/rate_limit_reason", interpreter: notion},
	{name: "Airtable", says: "RATE_LIMIT_REACHED is 5 a second and base", source: "airtable.com/developers, rate limits", code: "RATE_LIMIT_REACHED", scope: "base"},
	{name: "Airtable", says: "PUBLIC_API_BILLING_LIMIT_EXCEEDED is the month of a workspace", source: "airtable.com/developers, rate limits", code: "PUBLIC_API_BILLING_LIMIT_EXCEEDED", kind: KindQuota, scope: "workspace"},
	{name: "ClickUp", says: "ECODE APP_002, of a token", source: "developer.clickup.com, rate limits", code: "APP_002", scope: "token"},
	{name: "Salesforce", says: "REQUEST_LIMIT_EXCEEDED at 403 is the org's 24 hours", source: "developer.salesforce.com, API limits", header: "Sforce-Limit-Info", code: "REQUEST_LIMIT_EXCEEDED", refused: true, kind: KindQuota, scope: "org"},
	{name: "Stripe", says: "lock_timeout is contention for one object", source: "docs.stripe.com/rate-limits", code: "lock_timeout", kind: KindSecondary, scope: "resource"},
	{name: "Xero", says: "X-Rate-Limit-Problem names the limit; per tenant", source: "developer.xero.com, limits", header: "X-Rate-Limit-Problem", scope: "tenant", interpreter: xero},
	{name: "QuickBooks", says: "ThrottleExceeded at 400 and 429, of a realm; one within a batch is not the batch's", source: "developer.intuit.com, throttling", code: "3001", text: "throttleexceeded", refused: true, scope: "realm"},
	{name: "QuickBooks", says: "the same with its longer number", source: "developer.intuit.com, throttling", code: "003001", text: "throttleexceeded", refused: true, scope: "realm"},
	{name: "Google APIs", says: "403 with userRateLimitExceeded", source: "developers.google.com/workspace, handle errors", code: "userRateLimitExceeded", refused: true, scope: "user"},
	{name: "Google APIs", says: "403 with rateLimitExceeded", source: "developers.google.com/workspace, handle errors", code: "rateLimitExceeded", path: "error/errors", refused: true, scope: "project"},
	{name: "Google APIs, YouTube", says: "403 with quotaExceeded or dailyLimitExceeded, until midnight Pacific", source: "developers.google.com/youtube, errors", code: "quotaExceeded", path: "error/errors", refused: true, kind: KindQuota, scope: "project"},
	{name: "Google APIs", says: "403 with dailyLimitExceeded", source: "developers.google.com/workspace, handle errors", code: "dailyLimitExceeded", refused: true, kind: KindQuota, scope: "project"},
	{name: "Google RPC, Gemini", says: "RetryInfo.retryDelay is the wait, QuotaFailure names the limit", source: "google/rpc/error_details.proto", path: "error/details", interpreter: googleRPC},
	{name: "Dropbox", says: "error.reason.tag too_many_requests is of a user", source: "dropbox.com/developers, error handling", code: "too_many_requests", path: "error/reason", scope: "user"},
	{name: "Dropbox", says: "too_many_write_operations is of a namespace", source: "dropbox.com/developers, error handling", code: "too_many_write_operations", path: "error/reason", scope: "namespace"},
	{name: "DocuSign", says: "400 with HOURLY_ or BURST_APIINVOCATION_LIMIT_EXCEEDED", source: "developers.docusign.com, API limits", path: "errorCode", text: "", interpreter: docusign},
	{name: "Zoom", says: "X-RateLimit-Category and -Type, of an account", source: "developers.zoom.us, rate limits", header: "X-Ratelimit-Category", scope: "account"},
	{name: "Twilio", says: "20429 is concurrency, of an account", source: "twilio.com/docs/api/errors/20429", code: "20429", kind: KindConcurrency, scope: "account"},
	{name: "SendGrid", says: "X-RateLimit-* is of a route", source: "docs.sendgrid.com, rate limits", path: "errors/0/message", text: "too many requests", interpreter: sendgrid},
	{name: "Canvas LMS", says: "403, cost units in X-Rate-Limit-Remaining, of a token", source: "canvas.instructure.com/doc/api, throttling", header: "X-Request-Cost", onSuccess: true, unit: UnitPoints, scope: "token"},
	{name: "Azure Compute", says: "x-ms-ratelimit-remaining-resource: policy;n", source: "learn.microsoft.com/azure, compute throttling", header: "X-Ms-Ratelimit-Remaining-Resource", scope: "operation"},
	{name: "Azure Cosmos DB", says: "x-ms-retry-after-ms; substatus 3200 is a partition's request units", source: "learn.microsoft.com/azure/cosmos-db, 429", header: "X-Ms-Substatus", value: "3200", scope: "partition"},
	{name: "Azure API Management", says: "the sentence tells the wait", source: "learn.microsoft.com/azure/api-management, rate-limit policy", text: "rate limit is exceeded. try again in", scope: "subscription"},
	{name: "Azure API Management", says: "403; quotas are replenished in hh:mm:ss, d.hh:mm:ss or days", source: "learn.microsoft.com/azure/api-management, quota policy", text: "out of call volume quota", refused: true, kind: KindQuota, scope: "subscription"},
	{name: "Azure API Management", says: "bandwidth quotas", source: "learn.microsoft.com/azure/api-management, quota policy", text: "out of bandwidth quota", refused: true, kind: KindQuota, scope: "subscription"},
	{name: "Microsoft Graph", says: "activityLimitReached, of app and tenant", source: "learn.microsoft.com/graph/throttling", code: "activityLimitReached", scope: "app"},
	{name: "Apigee", says: "QuotaViolation, of a key", source: "docs.apigee.com, quota policy", text: "quota violation", refused: true, kind: KindQuota, scope: "key"},
	{name: "Apigee", says: "SpikeArrestViolation at 429 or 500 names its rate", source: "docs.apigee.com, spike arrest", text: "spike arrest violation", refused: true, scope: "key", interpreter: spikeArrest},
	{name: "Istio, Envoy", says: "x-local-rate-limit is of one instance", source: "istio.io/docs, rate limit", header: "X-Local-Rate-Limit", scope: "instance"},
	{name: "Envoy", says: "x-envoy-ratelimited marks a refusal whatever the status", source: "envoyproxy.io/docs, rate limit filter", header: "X-Envoy-Ratelimited", refused: true, interpreter: envoy},
	{name: "MediaWiki", says: "maxlag: 200 or 503 with X-Database-Lag", source: "mediawiki.org/wiki/Manual:Maxlag_parameter", match: "*.wikipedia.org/w/api.php *.wikimedia.org/w/api.php *.wikidata.org/w/api.php", header: "X-Database-Lag", onSuccess: true, refused: true, kind: KindOverload},
	{name: "MediaWiki", says: "200 with MediaWiki-API-Error: ratelimited", source: "mediawiki.org/wiki/API:Etiquette", header: "Mediawiki-Api-Error", value: "ratelimited", onSuccess: true, refused: true, scope: "user"},
	{name: "NCBI", says: "count and limit a second in the body, also with 200", source: "ncbi.nlm.nih.gov/books/NBK25497", match: "eutils.ncbi.nlm.nih.gov/", path: "api-key", scope: "ip", interpreter: ncbi},
	{name: "Semantic Scholar", says: "unauthenticated callers share by address", source: "api.semanticscholar.org", text: "apply for a key for higher rate limits", scope: "ip"},
	{name: "Open-Meteo", says: "the sentence names the window", source: "open-meteo.com", text: "api request limit exceeded", scope: "ip", interpreter: openMeteo},
	{name: "OSM Nominatim", says: "Bandwidth limit exceeded", source: "operations.osmfoundation.org, Nominatim policy", text: "bandwidth limit exceeded", refused: true, scope: "ip"},
	{name: "TMDB", says: "the sentence names the limit", source: "developer.themoviedb.org, rate limiting", text: "over the allowed limit of (", scope: "ip", interpreter: tmdb},
	{name: "Binance", says: "418 is a ban, code -1003 is of the address", source: "developers.binance.com, limits", code: "-1003", scope: "ip"},
	{name: "Kraken", says: "200 with EGeneral:Temporary lockout", source: "docs.kraken.com, rate limits", match: "api.kraken.com/", text: "", code: "EGeneral:Temporary lockout", kind: KindBan, scope: "account"},
	{name: "Kraken", says: "200 with EAPI: or EOrder:Rate limit exceeded", source: "docs.kraken.com, rate limits", code: "EAPI:Rate limit exceeded", scope: "account"},
	{name: "Kraken", says: "200 with EOrder:Rate limit exceeded", source: "docs.kraken.com, rate limits", code: "EOrder:Rate limit exceeded", scope: "account"},
	{name: "Alpha Vantage", says: "200 with Note or Information", source: "alphavantage.co/support", match: "www.alphavantage.co/query", text: "thank you for using alpha vantage", onSuccess: true, refused: true, scope: "key", interpreter: alphaVantage},
	{name: "Trading 212", says: "X-RateLimit-Period and -Used of a route", source: "t212public-api-docs.redoc.ly", header: "X-Ratelimit-Period", interpreter: trading212},
	{name: "CoinGecko", says: "status.error_code 429", source: "docs.coingecko.com, rate limits", path: "status/error_code", scope: "ip"},
	{name: "VirusTotal", says: "QuotaExceededError, of a key", source: "docs.virustotal.com, quotas", code: "QuotaExceededError", kind: KindQuota, scope: "key"},
	{name: "Shodan", says: "one request a second and key", source: "developer.shodan.io", text: "request rate limit reached", scope: "key"},
	{name: "Twitch", says: "800 points a minute under RateLimit-* with an epoch", source: "dev.twitch.tv/docs/api/guide, rate limits", header: "Ratelimit-Limit", value: "800", onSuccess: true, interpreter: twitch},
	{name: "OpenAI and kin", says: "insufficient_quota is not a matter of time", source: "platform.openai.com/docs/guides/error-codes", code: "insufficient_quota", kind: KindQuota, scope: "org"},
	{name: "IETF problem types", says: "quota-exceeded, temporary-reduced-capacity, abnormal-usage-detected", source: "draft-ietf-httpapi-ratelimit-headers-10, 7", path: "violated-policies"},
}
