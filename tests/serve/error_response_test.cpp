// SPDX-License-Identifier: Apache-2.0
// Errors as clients see them, without a server.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/serve/serve_fixture.h"
#include "tests/support/errors.h"
#include "vitrail/serve/call_internal.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;
using testing::json;

TEST(ErrorResponse, HasTheMessageAndTellsWhenToTryAgain) {
  for (const int status : {400, 401, 404, 413, 422, 429, 500, 503, 504}) {
    const HttpResponse response = error_response("classify", status, "a \"reason\"");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(json::parse(response.body), (json{{"error", "a \"reason\""}}));
    const Headers want = status == 429 || status == 503 ? Headers{{"Retry-After", "1"}} : Headers{};
    EXPECT_EQ(response.headers, want) << status;
  }
}

// openai-python raises its exceptions by the status, and shows the type.
TEST(ErrorResponse, OfEmbeddingsHasOpenAisTypeOfTheStatus) {
  const std::map<int, std::string> types{{400, "invalid_request_error"}, {401, "authentication_error"},
                                         {404, "invalid_request_error"}, {413, "invalid_request_error"},
                                         {429, "rate_limit_error"},      {499, "invalid_request_error"},
                                         {500, "server_error"},          {503, "server_error"}};
  for (const auto& [status, type] : types) {
    const HttpResponse response = error_response("embeddings", status, "reason");
    EXPECT_EQ(json::parse(response.body)["error"], (json{{"message", "reason"}, {"type", type}, {"code", status}}));
    EXPECT_EQ(response.headers.size(), status == 429 || status == 503 ? 1U : 0U) << status;
  }
}

TEST(Failure, OfTheServerHasAStatusAndKeepsItsMessageFromClients) {
  const testing::Warnings warnings;
  const auto failure = [](const std::exception& error) {
    const Failure of = failure_of(error, "m");
    return str(of.status, " ", of.error);
  };
  EXPECT_ERROR(failure(Error("x.png", "an image", "text")), "0 x.png", "text");
  EXPECT_EQ(failure(HttpError(413, "too much")), "413 too much");
  EXPECT_EQ(failure(std::bad_alloc()), "503 out of memory");
  EXPECT_TRUE(warnings.messages.empty());
  EXPECT_EQ(failure(std::runtime_error("a path")), "500 internal error");
  EXPECT_EQ(warnings.messages, std::vector<std::string>{"serve: m: a path"});
}

TEST(ServerAddress, OnlyLoopbackNeedsNoKey) {
  const auto serve_on = [](const std::string& host, const std::string& key = "", bool is_public = false) {
    ServeOptions options = testing::serve_options();
    options.host = host;
    options.api_key = key;
    options.public_without_key = is_public;
    const Server server(options);
  };
  for (const char* host :
       {"0.0.0.0", "126.0.0.1", "126.255.255.255", "128.0.0.1", "10.0.0.1", "::", "fe80::1", "::ffff:10.0.0.1"}) {
    const std::string message = error_of([&] { serve_on(host); });
    EXPECT_TRUE(contains(message, "--host: expected an API key")) << message;
  }
  for (const char* host : {"", "example.org", "127.0.0", "127.0.0.1:80", "[::1]", "1.2.3.256"}) {
    const std::string message = error_of([&] { serve_on(host); });
    EXPECT_TRUE(contains(message, "expected an IPv4 or IPv6 address")) << message;
  }
  EXPECT_NO_THROW(serve_on("127.0.0.1"));
  EXPECT_NO_THROW(serve_on("localhost"));
  EXPECT_NO_THROW(serve_on("127.255.0.9"));
  EXPECT_NO_THROW(serve_on("0.0.0.0", "key"));
  EXPECT_NO_THROW(serve_on("0.0.0.0", "", true));
}

TEST(ServerKey, IsEqualInEveryByte) {
  ServeOptions options = testing::serve_options();
  options.api_key = "abc";
  const testing::TestServer server(options);
  const std::string png = testing::png_of(testing::noise_image(1));
  for (const char* key : {"abcabc", "abca", "ab", "a", "abd", "bbc", "ABC", "abc abc"})
    EXPECT_EQ(server.post("/v1/classify", png, std::string("Authorization: Bearer ") + key + "\r\n").status, 401)
        << key;
  EXPECT_EQ(server.post("/v1/classify", png, "Authorization: Bearer abc\r\n").status, 200);
}

}  // namespace
}  // namespace vitrail::serve
