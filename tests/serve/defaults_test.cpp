// SPDX-License-Identifier: Apache-2.0
// The documented defaults of a server, and its limits' ranges as messages name them.
#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "vitrail/serve/batcher_internal.h"
#include "vitrail/serve/failure_internal.h"
#include "vitrail/serve/http_internal.h"
#include "vitrail/serve/options.h"
#include "vitrail/tasks/task.h"

namespace vitrail::serve {
namespace {

using testing::error_of;

TEST(ServeDefaults, OfOptions) {
  const ServeOptions options;
  EXPECT_TRUE(options.models.empty());
  EXPECT_EQ(options.host, "127.0.0.1");
  EXPECT_EQ(options.port, 8080);
  EXPECT_EQ(options.unix_path, "");
  EXPECT_EQ(options.api_key, "");
  EXPECT_FALSE(options.public_without_key);
  EXPECT_FALSE(options.model_control);
  EXPECT_EQ(options.batch, 8);
  EXPECT_EQ(options.delay_ms, 0);
  EXPECT_EQ(options.decode_threads, 0);
  const Batcher::Options batcher;
  EXPECT_EQ(batcher.batch, 8);
  EXPECT_EQ(batcher.delay_ms, 0);
  EXPECT_EQ(Batcher::kMaxWaitingBytes, 268'435'456u);
  EXPECT_EQ(tasks::kMaxResultValues, 16'777'216);
}

TEST(LimitNames, RefusalsNameTheRange) {
  Limits limits;
  const auto refusal = [&](const char* name, const char* value) {
    return error_of([&] { set_limit(limits, name, value); });
  };
  EXPECT_EQ(refusal("images", "0"), "images: expected an integer from 1 to 1099511627776, got '0'");
  EXPECT_EQ(refusal("json-depth", "2147483648"),
            "json-depth: expected an integer from 1 to 2147483647, got '2147483648'");
  EXPECT_EQ(refusal("idle-seconds", "0"), "idle-seconds: expected a number from 0.001 to 1e+06, got '0'");
  EXPECT_EQ(refusal("x", "1"),
            "--limit: expected one of body-bytes, body-bytes-per-second, body-grace-seconds, buffered-bytes, chunks, "
            "connections, embedding-bytes, exit-seconds, header-bytes, header-seconds, headers, idle-seconds, images, "
            "json-depth, outputs, pixels, request-seconds, requests, got 'x'");
}

TEST(ServeDefaults, ResultsThatAreTooLargeHaveAStatusOfTheirOwn) {
  EXPECT_EQ(failure_of(tasks::TooLarge("too large"), "route").status, 413);
}

TEST(ServeDefaults, OfRequestsAndResponses) {
  const HttpRequest request{
      .method = "GET", .target = "/", .headers = {{"a", "1"}, {"b", "2"}, {"a", "3"}}, .body = {}};
  EXPECT_EQ(request.header("a"), "1") << "the first of several";
  EXPECT_EQ(request.header("b"), "2");
  EXPECT_EQ(request.header("A"), "") << "names are in lower case";
  const HttpResponse response;
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_TRUE(response.body.empty() && response.headers.empty());
  const TaskOptions task;
  EXPECT_EQ(task.bytes, 0u);
  EXPECT_FALSE(task.is_long);
}

}  // namespace
}  // namespace vitrail::serve
