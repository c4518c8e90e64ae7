// SPDX-License-Identifier: Apache-2.0
// The limit of open files against the limit of connections.
#include <memory>

#include "tests/serve/serve_fixture.h"
#include "tests/support/serve_process.h"

namespace vitrail::testing {
namespace {

// Opens this number of connections, which must be served, and expects the first one to yield to the next.
void expect_connections(const ServeProcess& server, int count) {
  std::vector<std::unique_ptr<HttpConnection>> open;
  for (int i = 0; i < count; ++i) {
    open.push_back(std::make_unique<HttpConnection>(server.port()));
    open.back()->send(http_request("GET", "/livez"));
    ASSERT_EQ(open.back()->receive().status, 200) << i;
  }
  EXPECT_FALSE(open.front()->closed_within(0.1));
  HttpConnection next(server.port());
  EXPECT_TRUE(open.front()->closed_within(10));
}

TEST(ServeOpenFiles, TheSoftLimitIsRaisedToWhatTheConnectionsNeed) {
  const ServeProcess server({"-m", small_model(), "--limit", "connections=100"}, {}, "-Sn 40");
  EXPECT_FALSE(contains(server.read_errors(), "warning")) << server.read_errors();
  expect_connections(server, 100);
}

TEST(ServeOpenFiles, ConnectionsThatDoNotFitYield) {
  const ServeProcess server({"-m", small_model()}, {}, "-n 80");
  EXPECT_TRUE(contains(server.read_errors(), "permits 40 connections, not 1024")) << server.read_errors();
  expect_connections(server, 40);
}

}  // namespace
}  // namespace vitrail::testing
