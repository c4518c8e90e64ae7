// SPDX-License-Identifier: Apache-2.0
// Models by their names and kinds, and the routes, without a server.
#include "vitrail/serve/model_registry_internal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/serve/serve_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/models/bundled.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/response_size_internal.h"
#include "vitrail/serve/routes_internal.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;

ServeOptions options_of(const std::vector<ModelSource>& models) {
  ServeOptions options;
  options.models = models;
  options.model.threads = 1;
  return options;
}

int status_of(const std::function<void()>& action) {
  try {
    action();
    return 200;
  } catch (const HttpError& error) {
    return error.status();
  } catch (const Error&) {
    return 400;
  }
}

// The present resident size of this process in bytes.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// A model of 21 MB.  While one is loaded there are two; the memory of the one before is returned to the system.
TEST(ModelRegistry, ModelsThatAreLoadedAgainDoNotOccupyMoreMemory) {
#if defined(VITRAIL_SANITIZED) || !defined(__GLIBC__)
  GTEST_SKIP() << "a sanitizer's allocator, or another C library, keeps freed memory";
#endif
  ModelRegistry registry(options_of({{"model", testing::fixture("../../models/cifar10-vit").string()}}));
  registry.load_all();
  const double before = resident_bytes(), model = 21e6;
  for (int i = 0; i < 3; ++i) registry.load_all();
  EXPECT_LT(resident_bytes() - before, model / 2);
  for (int i = 0; i < 3; ++i) registry.load("model");
  EXPECT_LT(resident_bytes() - before, model / 2);
  registry.unload("model");
  EXPECT_LT(resident_bytes() - before, -model / 2);
}

TEST(ModelRegistry, WithoutANameTheFirstLoadedModelOfTheKindIsFound) {
  const std::string sam = testing::sam_fixture("padded_windows").model.string();
  ModelRegistry registry(
      options_of({{"masks", sam}, {"small", testing::small_model()}, {"clip", testing::clip_model()}}));
  const auto found = [&](ModelKind kind) { return registry.find(std::nullopt, kind)->name(); };
  EXPECT_EQ(status_of([&] { found(ModelKind::any); }), 503);
  EXPECT_EQ(status_of([&] { registry.find("small", ModelKind::any); }), 503);
  EXPECT_EQ(status_of([&] { registry.find("none", ModelKind::any); }), 404);
  registry.load("clip");
  EXPECT_EQ(found(ModelKind::any), "clip");
  EXPECT_EQ(found(ModelKind::images), "clip");
  EXPECT_TRUE(contains(error_of([&] { found(ModelKind::segmenter); }), "none among those served"));
  registry.load_all();
  EXPECT_EQ(found(ModelKind::any), "masks");
  EXPECT_EQ(found(ModelKind::images), "small");
  EXPECT_EQ(found(ModelKind::segmenter), "masks");
  EXPECT_EQ(registry.find("clip", ModelKind::images)->name(), "clip");
  EXPECT_EQ(status_of([&] { registry.find("clip", ModelKind::segmenter); }), 400);
  EXPECT_EQ(status_of([&] { registry.find("masks", ModelKind::images); }), 400);
  registry.unload("small");
  EXPECT_EQ(found(ModelKind::images), "clip");
  EXPECT_EQ(status_of([&] { registry.find("small", ModelKind::images); }), 503);
  EXPECT_EQ(status_of([&] { registry.unload("none"); }), 404);
  EXPECT_EQ(status_of([&] { registry.load("none"); }), 404);
  std::string names;
  for (const auto& [name, model] : registry.list()) names += name + (model ? "+ " : "- ");
  EXPECT_EQ(names, "masks+ small- clip+ ");
  registry.unload("clip");
  EXPECT_TRUE(contains(error_of([&] { found(ModelKind::images); }), "only those of Segment Anything"));
}

TEST(ModelRegistry, AModelThatIsLoadedAgainHasAnotherNumberAndTheOldOneLivesOn) {
  ModelRegistry registry(options_of({{"small", testing::small_model()}}));
  registry.load_all();
  const ModelPointer before = registry.find("small", ModelKind::images);
  registry.load("small");
  const ModelPointer after = registry.find("small", ModelKind::images);
  EXPECT_NE(before->number(), after->number());
  EXPECT_TRUE(before->classifies());
  EXPECT_EQ(before->image_tokens(), 17);
  EXPECT_TRUE(contains(error_of([] {
                         ModelRegistry(options_of({{"a", testing::small_model()}, {"a", testing::clip_model()}}));
                       }),
                       "'a' twice"));
}

// Bundled models are those of folders with a configuration, by name; the program's default one is the first.
TEST(ModelRegistry, WithoutModelsTheBundledOnesAreServedTheDefaultFirst) {
  const std::filesystem::path home = testing::scratch_folder();
  for (const std::string name : {"a", models::kDefaultModel, "z"}) {
    std::filesystem::create_directories(home / "models" / name);
    std::ofstream(home / "models" / name / "config.json") << "{}";
  }
  ::setenv("VITRAIL_HOME", home.c_str(), 1);
  std::vector<std::string> names;
  for (const auto& [name, model] : ModelRegistry(options_of({})).list()) names.push_back(name);
  ::unsetenv("VITRAIL_HOME");
  ASSERT_GE(names.size(), 3U);
  EXPECT_EQ(names[0], models::kDefaultModel);
  EXPECT_TRUE(std::is_sorted(names.begin() + 1, names.end()));
}

TEST(ModelRegistry, AFailedLoadKeepsTheModelsBefore) {
  const auto folder = testing::scratch_folder() / "model";
  std::filesystem::copy(testing::small_model(), folder);
  ModelRegistry registry(options_of({{"small", folder.string()}}));
  registry.load_all();
  const ModelPointer before = registry.find("small", ModelKind::images);
  std::filesystem::remove(folder / "config.json");
  EXPECT_THROW(registry.load("small"), Error);
  EXPECT_THROW(registry.load_all(), Error);
  EXPECT_EQ(registry.find("small", ModelKind::images), before);
}

TEST(Routes, AreFoundByMethodAndPath) {
  const auto route = [](const char* method, const std::vector<std::string>& path) {
    std::string methods;
    const Route* const found = find_route(method, path, methods);
    return found ? found->name : "-" + methods;
  };
  EXPECT_EQ(route("POST", {"v1", "classify"}), "classify");
  EXPECT_EQ(route("GET", {"v1", "classify"}), "-POST");
  EXPECT_EQ(route("GET", {"healthz"}), "ready");
  EXPECT_EQ(route("HEAD", {"healthz"}), "ready");
  EXPECT_EQ(route("POST", {"healthz"}), "-GET");
  EXPECT_EQ(route("GET", {}), "page");
  EXPECT_EQ(route("GET", {"page", "x.js"}), "page");
  EXPECT_EQ(route("GET", {"page", "x", "y"}), "-");
  EXPECT_EQ(route("GET", {"v1"}), "-");
  EXPECT_EQ(route("GET", {"v2", "models", "stats"}), "v2_statistics");
  EXPECT_EQ(route("GET", {"v2", "models", "a"}), "v2_model");
  EXPECT_EQ(route("GET", {"v2", "models", "a", "versions", "1"}), "v2_model");
  EXPECT_EQ(route("POST", {"v2", "models", "a", "versions", "1", "infer"}), "v2_infer");
  EXPECT_EQ(route("POST", {"v2", "repository", "models", "a", "unload"}), "v2_unload");
  // Without a key only health, the page and its description are served.
  for (const Route& each : routes()) {
    const std::vector<std::string> free{"live", "ready", "page", "openapi", "v2_live", "v2_ready"};
    EXPECT_EQ(each.is_public, std::ranges::find(free, each.name) != free.end()) << each.name;
  }
}

TEST(ResponseSize, IsLimitedByTheProductOfItsFactors) {
  EXPECT_NO_THROW(check_response_size(10, 10, 100));
  EXPECT_NO_THROW(check_response_size(10, 0, 100));
  EXPECT_NO_THROW(check_response_size(0, 1000, 100));
  EXPECT_EQ(status_of([] { check_response_size(11, 10, 109); }), 413);
  EXPECT_EQ(status_of([] { check_response_size(1, 101, 100); }), 413);
  EXPECT_EQ(status_of([] { check_response_size(INT64_MAX, INT64_MAX); }), 413);
}

}  // namespace
}  // namespace vitrail::serve
