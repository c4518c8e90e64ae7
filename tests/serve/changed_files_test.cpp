// SPDX-License-Identifier: Apache-2.0
// Files of models that change while they are served: requests, health and reloads.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/serve/serve_fixture.h"
#include "tests/support/serve_process.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

const std::string kUsed = "a file of a model has changed: reload the models";

std::string reason_of(const HttpReply& reply) {
  const json body = json::parse(reply.body, nullptr, false);
  return str(reply.status, " ", body.is_object() && body.contains("error") ? body["error"].dump() : reply.body);
}

TEST(ServeChangedFiles, HealthNamesTheModelAndOthersAreServed) {
  const Warnings warnings;
  const serve::ServeOptions options = with_copied_models();
  TestServer server(options);
  const std::string png = png_of(noise_image(1));
  const std::string ready = "{\"ready\":true}\n";
  EXPECT_EQ(server.get("/healthz").body, ready);
  change_weights(options.models[0]);
  const std::string changed = "files of small have changed: reload the models";
  for (int i = 0; i < 2; ++i) {  // also after requests
    for (const char* target : {"/healthz", "/v2/health/ready"})
      EXPECT_EQ(reason_of(server.get(target)), "503 \"not ready: " + changed + "\"") << target;
    EXPECT_EQ(reason_of(server.get("/v2/models/small/ready")), "503 \"" + changed + "\"");
    EXPECT_EQ(server.get("/v2/models/clip/ready").status, 200);
    EXPECT_EQ(server.get("/livez").status, 200);
    EXPECT_EQ(server.metric("vitrail_ready"), 0);
    EXPECT_FALSE(server.ready());
    EXPECT_EQ(server.changed_models(), std::vector<std::string>{"small"});
    EXPECT_EQ(reason_of(server.post("/v1/embed?model=small", png)), "503 \"" + kUsed + "\"");
    EXPECT_EQ(server.post("/v1/embed?model=clip", png).status, 200) << "its files are as they were";
  }
  const json index = json::parse(server.post("/v2/repository/index", "{}").body);
  EXPECT_EQ(index.at(0)["state"], "UNAVAILABLE");
  EXPECT_EQ(index.at(0)["reason"], changed);
  EXPECT_EQ(index.at(1)["state"], "READY");
  fs::remove(weights_of(options.models[0]));
  fs::copy(fs::path(small_model()) / "model.safetensors", weights_of(options.models[0]));
  EXPECT_EQ(server.get("/healthz").status, 503) << "the changed file is still mapped";
  server.load();
  EXPECT_EQ(server.get("/healthz").body, ready);
  EXPECT_EQ(server.metric("vitrail_ready"), 1);
  EXPECT_EQ(server.changed_models(), std::vector<std::string>{});
  EXPECT_EQ(server.post("/v1/embed?model=small", png).status, 200);
}

// Only files that are written to; a file that is renamed or deleted stays as it was for the server.
TEST(ServeChangedFiles, AReplacedFileLeavesTheModelReady) {
  const serve::ServeOptions options = with_copied_models();
  const TestServer server(options);
  fs::rename(weights_of(options.models[0]), scratch_folder() / "moved");
  fs::remove_all(options.models[1].path);
  EXPECT_EQ(server.get("/healthz").status, 200);
  EXPECT_EQ(server.changed_models(), std::vector<std::string>{});
}

TEST(ServeChangedFiles, ATouchedFileIsServed) {
  const Warnings warnings;
  const serve::ServeOptions options = with_copied_models();
  const TestServer server(options);
  const fs::path weights = weights_of(options.models[0]);
  const std::string png = png_of(noise_image(1));
  fs::last_write_time(weights, fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(server.post("/v1/classify", png).status, 200);
  EXPECT_EQ(server.get("/healthz").status, 200);
  std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x77');
  file.close();
  EXPECT_EQ(server.post("/v1/classify", png).status, 503) << "another byte";
  EXPECT_EQ(server.get("/healthz").status, 503);
}

TEST(ServeChangedFiles, OtherMappedFilesAreNoneOfAModel) {
  const TestServer server;
  const fs::path path = scratch_folder() / "file";
  std::ofstream(path) << "as it was";
  const MappedFile other(path);
  std::ofstream(path, std::ios::app) << " and more";
  EXPECT_EQ(server.get("/healthz").status, 200);
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 200);
}

TEST(ServeChangedFiles, EmbeddingsOfTextsAreRefused) {
  const Warnings warnings;
  const serve::ServeOptions options = with_copied_models();
  const TestServer server(options);
  const auto status = [&] {
    return server.post("/v1/embeddings", json{{"model", "clip"}, {"input", "a cat"}}.dump(), kJson).status;
  };
  EXPECT_EQ(status(), 200);
  change_weights(options.models[0]);
  EXPECT_EQ(status(), 200) << "another model's file";
  change_weights(options.models[1]);
  EXPECT_EQ(status(), 503);
}

TEST(ServeChangedFiles, WithoutALoadedModelTheServerIsNotReady) {
  serve::ServeOptions options = serve_options();
  options.model_control = true;
  const TestServer server(options);
  const auto post = [&](const std::string& change_of) {
    EXPECT_EQ(server.post("/v2/repository/models/" + change_of, "{}").status, 200) << change_of;
  };
  post("small/unload");
  EXPECT_EQ(server.get("/healthz").status, 200) << "clip is loaded";
  post("clip/unload");
  for (const char* target : {"/healthz", "/v2/health/ready"})
    EXPECT_EQ(reason_of(server.get(target)), "503 \"not ready: no model is loaded\"") << target;
  EXPECT_FALSE(server.ready());
  post("clip/load");
  EXPECT_EQ(server.get("/healthz").status, 200);
}

// Waits until standard error has the text.
bool server_says(const ServeProcess& server, const std::string& text) {
  for (int i = 0; i < 6000 && !contains(server.read_errors(), text); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return contains(server.read_errors(), text);
}

TEST(ServeChangedFiles, AFailedReloadTellsWhichModelsCannotBeUsed) {
  const serve::ServeOptions options = with_copied_models();
  const std::string path = options.models[0].path, weights = weights_of(options.models[0]).string();
  const ServeProcess server({"-m", path, "-m", "other=" + small_model()});
  fs::resize_file(weights, 1000);
  server.send_signal(SIGHUP);
  EXPECT_TRUE(server_says(server, "; until a reload succeeds, these models cannot be used: small\n"))
      << server.read_errors();
  EXPECT_TRUE(contains(server.read_errors(), "\nvitrail: error: " + weights)) << server.read_errors();
  EXPECT_FALSE(contains(server.read_errors(), "the models before remain")) << server.read_errors();
  EXPECT_EQ(http(server.port(), "GET", "/healthz").status, 503);
  EXPECT_EQ(http(server.port(), "POST", "/v1/classify?model=other", png_of(noise_image(1))).status, 200);
}

}  // namespace
}  // namespace vitrail::testing
