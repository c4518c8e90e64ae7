// SPDX-License-Identifier: Apache-2.0
// A request on its way: its one response, its errors, its log line and what is counted, without a server.
#include "vitrail/serve/call_internal.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <nlohmann/json.hpp>

#include "tests/serve/serve_fixture.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/png_response_internal.h"
#include "vitrail/serve/routes_internal.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;
using testing::json;

// An exchange whose responses a test sees.
struct Responses {
  std::vector<HttpResponse> all;
  std::atomic<bool> departed = false, timed_out = false;
};

class TestExchange : public HttpExchange {
 public:
  explicit TestExchange(std::shared_ptr<Responses> responses) : responses_(std::move(responses)) {}
  void respond(HttpResponse response) override { responses_->all.push_back(std::move(response)); }
  uint64_t client() const override { return 0; }
  bool departed() const override { return responses_->departed; }
  bool timed_out() const override { return responses_->timed_out; }

 private:
  std::shared_ptr<Responses> responses_;
};

class ServeCall : public ::testing::Test {
 protected:
  CallPointer call(const std::string& route, HttpRequest request = {}) {
    responses = std::make_shared<Responses>();
    return std::make_shared<Call>(engine, route, std::move(request), std::make_shared<TestExchange>(responses));
  }
  // The value of a line of the metrics; 0 without it.
  double metric(const std::string& name) const {
    const std::string text = "\n" + metrics.text({});
    const size_t at = text.find("\n" + name + " ");
    return at == text.npos ? 0 : std::stod(text.substr(at + name.size() + 2));
  }
  const HttpResponse& only() const {
    EXPECT_EQ(responses->all.size(), 1u);
    return responses->all.at(0);
  }

  std::vector<std::string> lines;
  ServeOptions options = [this] {
    ServeOptions given = testing::serve_options();
    given.limits.buffered_bytes = 1000;
    given.log = [this](const std::string& line) { lines.push_back(line); };
    return given;
  }();
  Browsers browsers{options};
  Metrics metrics;
  std::atomic<size_t> inflated_bytes{0};
  ModelRegistry models{options};
  WorkerPool pool{1};
  Batcher batcher{{}};
  RecentEmbeddings embeddings{0};
  ModelStatistics statistics;
  Engine engine{.options = options,
                .browsers = browsers,
                .metrics = metrics,
                .inflated_bytes = inflated_bytes,
                .models = models,
                .pool = pool,
                .batcher = batcher,
                .embeddings = embeddings,
                .statistics = statistics,
                .fault = [] { return std::string(); },
                .exposition = [] { return std::string(); }};
  std::shared_ptr<Responses> responses;
  ~ServeCall() override { pool.stop(); }
};

TEST_F(ServeCall, RespondsOnceAndIsCountedOnce) {
  {
    const CallPointer one = call("embed");
    one->respond(HttpResponse{.status = 201, .body = "first"});
    one->respond(HttpResponse{.status = 400, .body = "second"});
    one->fail(Error("third"));
  }
  EXPECT_EQ(only().status, 201);
  EXPECT_EQ(only().body, "first");
  EXPECT_EQ(metric(R"(vitrail_requests_total{route="embed",status="201"})"), 1);
  EXPECT_EQ(metric(R"(vitrail_requests_total{route="embed",status="400"})"), 0);
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(ServeCall, WithoutAResponseIsAnInternalError) {
  call("embeddings");
  EXPECT_EQ(only().status, 500);
  EXPECT_EQ(json::parse(only().body)["error"],
            (json{{"message", "internal error"}, {"type", "server_error"}, {"code", 500}}));
}

TEST_F(ServeCall, OfADepartedClientIsNotAnswered) {
  {
    const CallPointer gone = call("embed");
    EXPECT_FALSE(gone->departed());
    responses->departed = true;
    EXPECT_TRUE(gone->departed());
    gone->respond(HttpResponse{.status = 200});
  }
  EXPECT_TRUE(responses->all.empty());
  EXPECT_EQ(metric(R"(vitrail_departed_requests_total{route="embed"})"), 1);
  EXPECT_EQ(metric(R"(vitrail_requests_total{route="embed",status="200"})"), 0);
  EXPECT_TRUE(lines.empty());
}

TEST_F(ServeCall, AfterTheTimeLimitItsClientHasNotDeparted) {
  {
    const CallPointer late = call("embed");
    responses->departed = responses->timed_out = true;
    late->respond(HttpResponse{.status = 200});
  }
  EXPECT_TRUE(responses->all.empty());
  EXPECT_EQ(metric(R"(vitrail_departed_requests_total{route="embed"})"), 0);
  EXPECT_EQ(metric(R"(vitrail_requests_total{route="embed",status="200"})"), 0);
}

TEST_F(ServeCall, AnErrorHasTheStatusOfItsKind) {
  const testing::Warnings warnings;
  const auto failed = [&](const std::exception& error) {
    call("embed")->fail(error);
    return str(only().status, " ", json::parse(only().body)["error"].get<std::string>());
  };
  EXPECT_EQ(failed(HttpError(418, "tea")), "418 tea");
  EXPECT_EQ(failed(Error("a", "b", "c")), "400 a: expected b, got c");
  EXPECT_EQ(failed(std::bad_alloc()), "503 out of memory");
  EXPECT_EQ(only().headers.at(0), (std::pair<std::string, std::string>("Retry-After", "1")));
  EXPECT_TRUE(warnings.messages.empty());
  EXPECT_EQ(failed(std::runtime_error("a path")), "500 internal error");
  EXPECT_EQ(warnings.messages, std::vector<std::string>{"serve: embed: a path"});
}

TEST_F(ServeCall, ALogThatCannotBeWrittenIsOneWarning) {
  const testing::Warnings warnings;
  options.log = [](const std::string&) { throw Error("no space left"); };
  for (int i = 0; i < 2; ++i) {
    call("embed")->respond(HttpResponse{.status = 200});
    EXPECT_EQ(only().status, 200);
    call("embed")->guard([] { throw HttpError(413, "too much"); });
    EXPECT_EQ(only().status, 413);
  }
  EXPECT_EQ(warnings.messages, std::vector<std::string>{"serve: a line of the log was lost: no space left"});
}

TEST_F(ServeCall, GuardRespondsWithWhatAnActionThrows) {
  const CallPointer guarded = call("embed");
  guarded->guard([] {});
  EXPECT_TRUE(responses->all.empty());
  guarded->guard([] { throw HttpError(413, "too much"); });
  EXPECT_EQ(only().status, 413);
}

TEST_F(ServeCall, TimesAreThoseOfTheSlowestImage) {
  const CallPointer timed = call("classify");
  timed->add_times(0.25, 0.5, 1);
  timed->add_times(0.5, 1, 2);
  timed->add_times(0.125, 0.25, 1.5);
  timed->respond(HttpResponse{.status = 200, .body = "abc"});
  const Headers& headers = only().headers;
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[1].first, "X-Request-Id");
  EXPECT_EQ(headers[0].first, "Server-Timing");
  EXPECT_TRUE(headers[0].second.starts_with("decode;dur=500.000, queue;dur=1000.000, model;dur=2000.000, total;dur="))
      << headers[0].second;
}

TEST_F(ServeCall, ItsLineHasTheFieldsInTheirOrder) {
  HttpRequest request{.method = "PUT", .target = "/x", .headers = {}, .body = "12345", .client = "::1"};
  request.headers.emplace_back("x-request-id", "7");
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  request.headers.emplace_back("traceparent", parent);
  const CallPointer logged = call("classify", request);
  logged->add_times(0.5, 0.1234567, 2);
  logged->respond(HttpResponse{.status = 404, .body = "123"});
  ASSERT_EQ(lines.size(), 1u);
  auto line = nlohmann::ordered_json::parse(lines[0]);
  EXPECT_GE(line["seconds"].get<double>(), 0);
  line["seconds"] = 0;
  line["time"] = "";
  EXPECT_EQ(line.dump(), R"({"time":"","route":"classify","method":"PUT","status":404,"client":"::1","request_id":"7",)"
                         R"("request_bytes":5,"response_bytes":3,)"
                         R"("seconds":0,"decode_seconds":0.5,"queue_seconds":0.123457,"model_seconds":2.0,)"
                         R"("traceparent":")" +
                             parent + "\"}");
}

TEST_F(ServeCall, ItsModelCountsIt) {
  models.load_all();
  const auto stage = [&](const char* name) { return statistics.json("small", "1")["inference_stats"][name]; };
  const auto request = [&](const std::string& method) {
    return call("classify", {.method = method, .target = "/", .headers = {}, .body = {}});
  };
  for (const int status : {200, 399, 400, 500}) {
    const CallPointer counted = request("POST");
    counted->find_model("small");
    counted->add_times(1, 2, 4);
    counted->set_output_seconds(8);
    counted->respond(HttpResponse{.status = status});
  }
  EXPECT_EQ(stage("success")["count"], 2);
  EXPECT_EQ(stage("fail")["count"], 2);
  EXPECT_EQ(stage("compute_input")["ns"], 2'000'000'000);
  EXPECT_EQ(stage("queue")["ns"], 4'000'000'000);
  EXPECT_EQ(stage("compute_infer")["ns"], 8'000'000'000);
  EXPECT_EQ(stage("compute_output")["ns"], 16'000'000'000);
  request("POST")->respond(HttpResponse{.status = 200});
  EXPECT_EQ(stage("success")["count"], 2) << "a request without a model";
  const CallPointer metadata = request("GET");
  metadata->find_model("small");
  metadata->respond(HttpResponse{.status = 200});
  EXPECT_EQ(stage("success")["count"], 2) << "no inference";
  EXPECT_EQ(metric(R"(vitrail_requests_total{route="classify",status="200",model="small"})"), 2);
}

TEST_F(ServeCall, DecompressedBytesAreFreeAfterTheResponse) {
  HttpRequest plain{.method = "POST", .target = "/", .headers = {}, .body = std::string(2000, 'x')};
  const CallPointer without = call("classify", plain);
  without->decompress();
  EXPECT_EQ(inflated_bytes, 0u) << "no encoding";
  // An empty deflate stream: one final stored block of no bytes.
  HttpRequest empty{.method = "POST", .target = "/", .headers = {{"content-encoding", "deflate"}}, .body = {}};
  empty.body = std::string("\x01\x00\x00\xff\xff", 5);
  const auto stored = [](size_t size) {
    HttpRequest request{.method = "POST", .target = "/", .headers = {{"content-encoding", "deflate"}}, .body = {}};
    const auto low = static_cast<char>(size & 255), high = static_cast<char>(size >> 8);
    request.body = std::string({'\x01', low, high, static_cast<char>(~low), static_cast<char>(~high)});
    request.body += std::string(size, 'y');
    return request;
  };
  const CallPointer none = call("classify", empty);
  none->decompress();
  EXPECT_EQ(none->request().body, "");
  const CallPointer first = call("classify", stored(600));
  first->decompress();
  EXPECT_EQ(first->request().body, std::string(600, 'y'));
  EXPECT_EQ(inflated_bytes, 600u);
  const CallPointer second = call("classify", stored(400));
  second->decompress();
  EXPECT_EQ(inflated_bytes, 1000u) << "the limit itself";
  const CallPointer third = call("classify", stored(1));
  third->guard([&] { third->decompress(); });
  EXPECT_EQ(only().status, 429);
  EXPECT_EQ(json::parse(only().body)["error"], "the server is overloaded: try again");
  EXPECT_EQ(inflated_bytes, 1000u) << "those of a refused request are free";
  first->respond(HttpResponse{.status = 200});
  EXPECT_EQ(inflated_bytes, 400u);
  second->respond(HttpResponse{.status = 200});
  EXPECT_EQ(inflated_bytes, 0u);
  EXPECT_EQ(json::parse(lines.back())["request_bytes"], 405) << "as they were sent";
}

// A long text, which is cut with a warning, is in the last of three passes.
TEST_F(ServeCall, OthersRunDuringALongTextTaskWhichEndsWithItsClient) {
  const testing::Warnings warnings;
  models.load_all();
  options.limits.buffered_bytes = size_t{1} << 20;  // room for the texts as values of JSON
  const std::string long_text = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "cat ";
    return text;
  }();
  std::vector<std::string> texts(2 * DualModel::kTextsPerPass, "dog");
  texts.push_back(long_text);
  const std::string png = testing::png_of(testing::noise_image(1));
  const auto zeroshot = [&] {
    const CallPointer asking = call("zeroshot", {.method = "POST", .target = "/", .headers = {}, .body = png});
    asking->options().add("model", "clip");
    for (const std::string& text : texts) asking->options().add("labels", text);
    asking->guard([&] { task_route(asking); });
  };
  const auto embeddings = [&] {
    const json body{{"model", "clip"}, {"input", texts}};
    const CallPointer asking =
        call("embeddings", {.method = "POST", .target = "/", .headers = {}, .body = body.dump()});
    asking->guard([&] { embeddings_route(asking); });
  };
  for (const auto& [route, ask] :
       {std::pair<std::string, std::function<void()>>{"zeroshot", zeroshot}, {"embeddings", embeddings}}) {
    std::promise<void> begin;
    batcher.run([&] { begin.get_future().wait(); });  // both tasks wait together
    ask();
    batcher.run([&] { responses->departed = true; });
    begin.set_value();
    testing::wait_until([&, name = route] {
      return metric("vitrail_departed_requests_total{route=\"" + name + "\",model=\"clip\"}") == 1;
    });
    EXPECT_TRUE(warnings.messages.empty()) << route << ": " << warnings.messages.at(0);
  }
}

TEST_F(ServeCall, APngIsAskedForByFormatOrByAccept) {
  const auto wanted = [&](const std::string& accept, const std::vector<std::string>& formats, bool single = true) {
    HttpRequest request;
    if (!accept.empty()) request.headers.emplace_back("accept", accept);
    const CallPointer asking = call("pca", request);
    for (const std::string& format : formats) asking->options().add("format", format);
    return result_format(*asking, single, {ResultFile{"png"}}) == "png";
  };
  EXPECT_FALSE(wanted("", {}));
  EXPECT_TRUE(wanted("image/png", {}));
  EXPECT_TRUE(wanted("IMAGE/PNG; q=1", {}));
  EXPECT_FALSE(wanted("image/*", {}));
  EXPECT_FALSE(wanted("image/png", {"json"}));
  EXPECT_TRUE(wanted("", {"png"}));
  EXPECT_FALSE(wanted("", {}, false));
  EXPECT_EQ(error_of([&] { wanted("", {"gif"}); }), "format: expected one of json, png, got 'gif'");
  EXPECT_EQ(error_of([&] { wanted("", {"png"}, false); }), "format: expected json for several images, got png");
  EXPECT_EQ(error_of([&] { wanted("image/png", {}, false); }), "format: expected json for several images, got png");
}

TEST_F(ServeCall, OutcomesAreAnObjectOrAList) {
  class Names : public tasks::Request {
    std::string json(const tasks::Item& item) const override {
      if (item.name == "bad") throw Error("bad object");
      return "{\"name\":\"" + item.name + "\"}";
    }
  };
  const auto response = [&](const std::vector<std::pair<std::string, std::string>>& given, bool single) {
    std::vector<ImageOutcome> outcomes;
    for (const auto& [name, error] : given) {
      outcomes.emplace_back();
      outcomes.back().item.name = name;
      outcomes.back().failure.error = error;
    }
    return list_response(Names(), outcomes, single);
  };
  EXPECT_EQ(response({{"a", ""}}, true).body, "{\"name\":\"a\"}\n");
  EXPECT_EQ(response({{"a", ""}}, false).body, "[{\"name\":\"a\"}]\n");
  EXPECT_EQ(response({{"a", ""}, {"b", "reason"}, {"bad", ""}}, false).body,
            "[{\"name\":\"a\"},{\"path\":\"b\",\"error\":\"reason\"},{\"path\":\"bad\",\"error\":\"bad object\"}]\n");
  EXPECT_EQ(response({{"a", ""}, {"b", "reason"}}, false).status, 200);
  EXPECT_EQ(response({{"bad", ""}, {"b", "reason"}}, false).status, 422);
  std::vector<ImageOutcome> outcomes(2);
  outcomes[0].failure = {"reason", 0};
  outcomes[1].failure = {"out of memory", 503};
  EXPECT_EQ(list_response(Names(), outcomes, false).status, 503) << "a fault of the server";
  const auto status_of = [](const Failure& failure, int status) {
    ImageOutcome outcome;
    outcome.failure = failure;
    try {
      require_result(outcome, status);
    } catch (const HttpError& error) {
      return error.status();
    }
    return 200;
  };
  EXPECT_EQ(status_of({}, 400), 200);
  EXPECT_EQ(status_of({"reason", 0}, 400), 400);
  EXPECT_EQ(status_of({"internal error", 500}, 400), 500);
  for (const auto& [name, error, message] :
       {std::tuple<std::string, std::string, std::string>{"a", "reason", "reason"}, {"bad", "", "bad object"}}) {
    try {
      response({{name, error}}, true);
      ADD_FAILURE() << name;
    } catch (const HttpError& failure) {
      EXPECT_EQ(failure.status(), 422);
      EXPECT_EQ(failure.what(), message);
    }
  }
}

}  // namespace
}  // namespace vitrail::serve
