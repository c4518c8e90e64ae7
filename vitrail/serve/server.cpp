// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/server.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>

#include "vitrail/base/parallel.h"
#include "vitrail/base/text.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/ignoring_case_internal.h"
#include "vitrail/serve/process_gauges_internal.h"
#include "vitrail/serve/request_images_internal.h"
#include "vitrail/serve/routes_internal.h"

namespace vitrail::serve {
namespace {

// Throws Error for a key that no request can carry.
void check_key(const ServeOptions& options) {
  const std::string& key = options.api_key;
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 127; };
  if (std::ranges::any_of(key, is_control))
    throw Error("API key", "characters that a header can have", "a control character, as of a second line");
  if (key.ends_with(' ')) throw Error("API key", "no space at its end, which a header loses", "one");
  constexpr size_t kOtherBytes = std::string_view("GET / HTTP/1.1\r\nHost:\r\nAuthorization: Bearer \r\n\r\n").size();
  if (key.size() + kOtherBytes > options.limits.header_bytes)
    throw Error("API key", str("at most ", options.limits.header_bytes, " bytes with the other lines of the header"),
                str(key.size(), " bytes"));
}

void check_options(const ServeOptions& options) {
  check_key(options);
  in_addr v4{};
  in6_addr v6{};
  if (!options.unix_path.empty()) return;
  const std::string host = address_of(options.host);
  if (::inet_pton(AF_INET, host.c_str(), &v4) != 1 && ::inet_pton(AF_INET6, host.c_str(), &v6) != 1)
    throw Error("--host", "an IPv4 or IPv6 address or localhost: 127.0.0.1", "'" + options.host + "'");
  if (!is_loopback(host) && options.api_key.empty() && !options.public_without_key) {
    throw Error("--host", "an API key (--api-key-file) or --public for an address that other machines can reach",
                "'" + options.host + "' without");
  }
}

bool has_body(const HttpRequest& head) {
  const std::string_view length = head.header("content-length");
  return length.find_first_not_of('0') != length.npos || !head.header("transfer-encoding").empty();
}

// Takes the same time wherever the texts differ.
bool equal_in_constant_time(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]));
  return difference == 0;
}

int threads_or_all(int threads) { return threads > 0 ? threads : available_threads(); }

}  // namespace

class Server::Implementation : public HttpHandler {
 public:
  explicit Implementation(ServeOptions options)
      : options_((check_options(options), std::move(options))),
        browsers_(options_),
        models_(options_),
        embeddings_(options_.limits.embedding_bytes),
        pool_(threads_or_all(options_.decode_threads)),
        batcher_({.batch = options_.batch,
                  .delay_ms = options_.delay_ms,
                  .on_batch =
                      [this](const std::string& model, size_t images, double seconds) {
                        metrics_.add_batch(model, images, seconds);
                        statistics_.add_batch(model, images, seconds);
                      }}),
        engine_{.options = options_,
                .browsers = browsers_,
                .metrics = metrics_,
                .inflated_bytes = inflated_bytes_,
                .models = models_,
                .pool = pool_,
                .batcher = batcher_,
                .embeddings = embeddings_,
                .statistics = statistics_,
                .fault = [this] { return fault(); },
                .exposition = [this] { return exposition(); }},
        transport_(listen({.host = address_of(options_.host), .port = options_.port, .unix_path = options_.unix_path},
                          options_.limits, *this)) {}

  ~Implementation() override {
    batcher_.stop();
    pool_.stop();
  }

  void load() {
    models_.load_all();
    loaded_ = true;
  }

  bool drain() {
    draining_ = true;
    return transport_->drain();
  }

  uint16_t port() const { return transport_->port(); }
  std::vector<std::string> changed_models() const { return models_.changed(); }
  // Why it is not ready; empty: it is.
  std::string fault() const {
    return loaded_ && !draining_ ? models_.fault() : "models are loading, or the server ends";
  }

  std::optional<HttpResponse> refuse(const HttpRequest& head, HttpLoad load) override {
    try {
      if (std::optional<HttpResponse> response = browsers_.preflight(head)) return response;
      const Target target = parse_target(head.target);
      std::vector<std::string> methods;
      const Route* const route = find_route(head.method, target.path, methods);
      if (!route && methods.empty()) throw HttpError(404, "no such route: GET /openapi.json lists them");
      if (!route) {
        HttpResponse response = error(head, 405, "expected the method " + join(methods));
        response.headers.emplace_back("Allow", join(methods));
        return response;
      }
      if (route->method == "GET" && has_body(head)) throw HttpError(413, "a GET request takes no body");
      if (route->access == Access::kHealth) return std::nullopt;
      if (load == HttpLoad::kFull) return error(head, 503, "too many connections");
      browsers_.check(head);
      if (route->is_public()) return std::nullopt;
      if (!authorized(head)) {
        HttpResponse response = error(head, 401, "expected the header Authorization: Bearer KEY");
        response.headers.emplace_back("WWW-Authenticate", "Bearer");
        return response;
      }
      if (route->access == Access::kManager) browsers_.check_token(head);
      if (route->method != "POST") return std::nullopt;
      if (load == HttpLoad::kOverloaded) return error(head, 429, "the server is overloaded: try again");
      if (!loaded_) return error(head, 503, "the models are loading: try again");
      return std::nullopt;
    } catch (const HttpError& failure) {
      return error(head, failure.status(), failure.what());
    } catch (const std::exception&) {
      return error(head, 500, "internal error");
    }
  }

  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) override {
    Target target = parse_target(request.target);  // refuse() has parsed it without an error
    std::vector<std::string> unused;
    const Route* const route = find_route(request.method, target.path, unused);
    auto call = std::make_shared<Call>(engine_, route->name, std::move(request), std::move(exchange));
    call->options().add(target.query);
    call->set_target(std::move(target));
    const auto run = [call, route] {
      if (call->departed()) return;
      call->guard([&] {
        call->decompress();
        route->run(call);
      });
    };
    if (route->is_public()) return run();  // at once: when the pool is busy, the server is alive nevertheless
    // What is parsed or decompressed may take long.
    const HttpRequest& given = call->request();
    const bool is_heavy = given.body.size() > kHeavyBytes || !given.header("content-encoding").empty();
    pool_.post({.run = run, .client = call->client(), .is_heavy = is_heavy});
  }

  HttpResponse error(const HttpRequest& head, int status, const std::string& message) override {
    std::string name = "none", form = name;
    std::vector<std::string> unused;
    try {
      const std::vector<std::string> path = parse_target(head.target).path;
      const Route* route = find_route(head.method, path, unused);
      if (!route) route = find_route("POST", path, unused);
      if (route) name = form = route->name;
      if (!route && !path.empty() && path[0] == "v1") form = kOpenAiRoute;
    } catch (const Error&) {
      // a target without a route
    }
    metrics_.count_request(name, status, 0);
    HttpResponse response = error_response(form, status, message);
    browsers_.permit(head, response);
    LogEntry entry = log_entry_of(head, name);
    response.headers.emplace_back("X-Request-Id", entry.request_id);
    entry.error = message;
    entry.status = status;
    entry.response_bytes = response.body.size();
    engine_.log(entry);
    return response;
  }

 private:
  bool authorized(const HttpRequest& head) const {
    if (options_.api_key.empty()) return true;
    constexpr std::string_view kScheme = "bearer ";
    const std::string_view given = head.header("authorization");
    return begins_ignoring_case(given, kScheme) &&
           equal_in_constant_time(given.substr(kScheme.size()), options_.api_key);
  }

  std::string exposition() const {
    std::vector<Metrics::Gauge> gauges{
        {"vitrail_build_info", "The version.", 1, metric_labels({{"version", VITRAIL_VERSION}})},
        {"vitrail_ready", "Whether requests are accepted.", fault().empty() ? 1.0 : 0.0},
        {"vitrail_embedding_cache_bytes", "Kept image embeddings.", static_cast<double>(embeddings_.bytes())},
        {"vitrail_connections", "Open connections.", static_cast<double>(transport_->connections())}};
    const std::map<std::string, size_t> waiting = batcher_.waiting_images();
    for (const auto& [model, unused] : models_.list()) {
      const auto found = waiting.find(model);
      gauges.push_back({"vitrail_waiting_images", "Images that wait for a batch.",
                        found == waiting.end() ? 0.0 : static_cast<double>(found->second),
                        metric_labels({{"model", model}})});
    }
    const std::vector<Metrics::Gauge> process = process_gauges();
    gauges.insert(gauges.end(), process.begin(), process.end());
    return metrics_.text(gauges);
  }

  ServeOptions options_;
  Browsers browsers_;
  Metrics metrics_;
  std::atomic<size_t> inflated_bytes_{0};
  std::atomic<bool> loaded_{false}, draining_{false};
  ModelRegistry models_;
  RecentEmbeddings embeddings_;
  ModelStatistics statistics_;
  WorkerPool pool_;
  Batcher batcher_;
  Engine engine_;
  std::unique_ptr<HttpTransport> transport_;  // last: its thread calls the members above
};

Server::Server(ServeOptions options) : implementation_(std::make_unique<Implementation>(std::move(options))) {}
Server::~Server() = default;
void Server::load() { implementation_->load(); }
bool Server::drain() { return implementation_->drain(); }
uint16_t Server::port() const { return implementation_->port(); }
bool Server::ready() const { return implementation_->fault().empty(); }
std::vector<std::string> Server::changed_models() const { return implementation_->changed_models(); }

}  // namespace vitrail::serve
