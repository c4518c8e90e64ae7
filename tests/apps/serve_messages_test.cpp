// SPDX-License-Identifier: Apache-2.0
// What serve says: the address, the limits of the system, the models that were loaded again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/support/http_client.h"
#include "tests/support/serve_process.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// Waits until standard error has the text.
bool says(const ServeProcess& server, const std::string& text) {
  for (int i = 0; i < 6000; ++i) {  // a minute
    if (contains(server.read_errors(), text)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Half of the files are the server's own, 128 at most; the rest are for connections.
TEST(ServeFiles, ALowLimitPermitsFewerConnections) {
#ifdef VITRAIL_SANITIZED
  GTEST_SKIP() << "a sanitizer opens files itself";
#endif
  const auto message = [](int fitting, int wanted) {
    return str("vitrail: warning: the limit of open files (ulimit -Hn) permits ", fitting, " connections, not ", wanted,
               ": raise it, or give --limit connections=", fitting, "\n");
  };
  const std::string serving = "vitrail: serving on http://127.0.0.1:";
  const ServeProcess low(serve_small({"--limit", "connections=100"}), {}, "-n 100");
  EXPECT_TRUE(low.read_errors().starts_with(message(50, 100) + serving)) << low.read_errors();
  const ServeProcess high(serve_small({"--limit", "connections=500"}), {}, "-n 627");
  EXPECT_TRUE(high.read_errors().starts_with(message(499, 500) + serving)) << high.read_errors();
  const ServeProcess enough(serve_small({"--limit", "connections=500"}), {}, "-n 628");
  EXPECT_TRUE(enough.read_errors().starts_with(serving)) << enough.read_errors();
  // The soft limit is raised to what the hard one permits.
  const ServeProcess soft(serve_small({"--limit", "connections=500"}), {}, "-Sn 100");
  EXPECT_TRUE(soft.read_errors().starts_with(serving)) << soft.read_errors();
}

TEST(ServeSignals, TellWhetherTheModelsWereLoadedAgain) {
  const fs::path folder = scratch_folder() / "model";
  fs::copy(small_model(), folder);
  ServeProcess server({"-m", folder.string()});
  server.send_signal(SIGHUP);
  EXPECT_TRUE(says(server, "\nvitrail: models loaded again\n")) << server.read_errors();
  fs::remove(folder / "config.json");
  server.send_signal(SIGHUP);
  EXPECT_TRUE(says(server, "\nvitrail: error: the models before remain: ")) << server.read_errors();
  EXPECT_EQ(http(server.port(), "GET", "/livez").status, 200);
  server.send_signal(SIGINT);
  EXPECT_EQ(server.wait(), 0) << "as at SIGTERM";
}

TEST(ServeSignals, AReloadWithoutEnoughMemoryKeepsTheModels) {
#ifdef VITRAIL_SANITIZED
  GTEST_SKIP() << "a sanitizer ends a process without memory";
#endif
  const ServeProcess server(serve_small());
  rlimit before{};
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_DATA, nullptr, &before), 0);
  const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_DATA, &none, nullptr), 0);
  server.send_signal(SIGHUP);
  EXPECT_TRUE(says(server, "\nvitrail: error: the models before remain: ")) << server.read_errors();
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_DATA, &before, nullptr), 0);
  EXPECT_EQ(http(server.port(), "GET", "/healthz").status, 200);
}

TEST(ServeKey, IsTheLineOfTheFile) {
  const fs::path file = scratch_folder() / "key";
  std::ofstream(file) << "my secret\r\n\n";
  const ServeProcess server(serve_small({"--api-key-file", file.string()}));
  const auto status = [&](const std::string& key) {
    return http(server.port(), "GET", "/v1/models", {}, key.empty() ? "" : "Authorization: Bearer " + key + "\r\n")
        .status;
  };
  EXPECT_EQ(status("my secret"), 200);
  EXPECT_EQ(status("my"), 401);
  EXPECT_EQ(status(""), 401);
  for (const char* empty : {"", "\n", "\r\n\r\n"}) {
    std::ofstream(file, std::ios::trunc) << empty;
    const ProgramResult result = run_program(Arguments{"serve", "--port", "0", "--api-key-file", file} + serve_small());
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err, "vitrail: error: " + file.string() + ": expected a key, got an empty file\n");
  }
  // The file has precedence over the environment.
  std::ofstream(file, std::ios::trunc) << "of the file";
  const ServeProcess both(serve_small({"--api-key-file", file.string()}), {{"VITRAIL_API_KEY", "of the environment"}});
  EXPECT_EQ(http(both.port(), "GET", "/v1/models", {}, "Authorization: Bearer of the file\r\n").status, 200);
}

TEST(ServeLimits, WithoutAValueAreErrorsOfTheirName) {
  for (const auto& [limit, name] :
       {std::pair("body-bytes", "body-bytes"), std::pair("body-bytes=", "body-bytes"), std::pair("none=1", "none")}) {
    const ProgramResult result = run_program(Arguments{"serve", "--port", "0", "--limit", limit} + serve_small());
    EXPECT_EQ(result.status, 1) << limit;
    EXPECT_TRUE(contains(result.err, name)) << result.err;
  }
}

}  // namespace
}  // namespace vitrail::testing
