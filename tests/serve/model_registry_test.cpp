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
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/text.h"
#include "vitrail/models/bundled.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/tasks/images/image_model.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;

ServeOptions options_with(const std::vector<ModelSource>& models) {
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
  ModelRegistry registry(options_with({{"model", testing::fixture("../../models/cifar10-vit").string()}}));
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
      options_with({{"masks", sam}, {"small", testing::small_model()}, {"clip", testing::clip_model()}}));
  const std::string any;
  const auto found = [&](const std::string& task) { return registry.find(std::nullopt, task)->name(); };
  EXPECT_EQ(status_of([&] { found(any); }), 503);
  EXPECT_EQ(status_of([&] { registry.find("small"); }), 503);
  EXPECT_EQ(status_of([&] { registry.find("none"); }), 404);
  registry.load("clip");
  EXPECT_EQ(found(any), "clip");
  EXPECT_EQ(found("embed"), "clip");
  EXPECT_TRUE(contains(error_of([&] { found("segment"); }), "none among those served"));
  registry.load_all();
  EXPECT_EQ(found(any), "masks");
  EXPECT_EQ(found("embed"), "small");
  EXPECT_EQ(found("segment"), "masks");
  EXPECT_EQ(registry.find("clip", "embed")->name(), "clip");
  EXPECT_EQ(status_of([&] { registry.find("clip", "segment"); }), 400);
  EXPECT_EQ(status_of([&] { registry.find("masks", "embed"); }), 400);
  registry.unload("small");
  EXPECT_EQ(found("embed"), "clip");
  EXPECT_EQ(status_of([&] { registry.find("small", "embed"); }), 503);
  EXPECT_EQ(status_of([&] { registry.unload("none"); }), 404);
  EXPECT_EQ(status_of([&] { registry.load("none"); }), 404);
  std::string names;
  for (const auto& [name, model] : registry.list()) names += name + (model ? "+ " : "- ");
  EXPECT_EQ(names, "masks+ small- clip+ ");
  registry.unload("clip");
  EXPECT_TRUE(contains(error_of([&] { found("embed"); }), "none among those served"));
}

TEST(ModelRegistry, AModelThatIsLoadedAgainHasAnotherNumberAndTheOldOneLivesOn) {
  ModelRegistry registry(options_with({{"small", testing::small_model()}}));
  registry.load_all();
  const ModelPointer before = registry.find("small", "embed");
  registry.load("small");
  const ModelPointer after = registry.find("small", "embed");
  EXPECT_NE(before->number(), after->number());
  EXPECT_TRUE(tasks::as_model<tasks::ImageModel>(before->loaded()).classifies());
  EXPECT_EQ(tasks::as_model<tasks::ImageModel>(before->loaded()).image_tokens(), 17);
  EXPECT_TRUE(contains(error_of([] {
                         ModelRegistry(options_with({{"a", testing::small_model()}, {"a", testing::clip_model()}}));
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
  for (const auto& [name, model] : ModelRegistry(options_with({})).list()) names.push_back(name);
  ::unsetenv("VITRAIL_HOME");
  ASSERT_GE(names.size(), 3U);
  EXPECT_EQ(names[0], models::kDefaultModel);
  EXPECT_TRUE(std::is_sorted(names.begin() + 1, names.end()));
}

TEST(ModelRegistry, AFailedLoadKeepsTheModelsBefore) {
  const auto folder = testing::scratch_folder() / "model";
  std::filesystem::copy(testing::small_model(), folder);
  ModelRegistry registry(options_with({{"small", folder.string()}}));
  registry.load_all();
  const ModelPointer before = registry.find("small", "embed");
  std::filesystem::remove(folder / "config.json");
  EXPECT_THROW(registry.load("small"), Error);
  EXPECT_THROW(registry.load_all(), Error);
  EXPECT_EQ(registry.find("small", "embed"), before);
}

TEST(Routes, AreFoundByMethodAndPath) {
  const auto route = [](const char* method, const std::vector<std::string>& path) {
    std::vector<std::string> methods;
    const Route* const found = find_route(method, path, methods);
    return found ? found->name : "-" + join(methods);
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
    EXPECT_EQ(each.is_public(), std::ranges::find(free, each.name) != free.end()) << each.name;
  }
}

TEST(ModelRegistry, RefusalsNameTheModels) {
  const std::string sam = testing::sam_fixture("padded_windows").model.string();
  ModelRegistry registry(options_with({{"small", testing::small_model()}, {"masks", sam}}));
  EXPECT_EQ(error_of([&] { registry.find("none"); }), "model: expected one of small, masks, got 'none'");
  EXPECT_EQ(error_of([&] { registry.find("small"); }), "the model 'small' is not loaded");
  EXPECT_EQ(error_of([&] { registry.find(std::nullopt); }), "no model is loaded");
  registry.load("masks");
  EXPECT_EQ(error_of([&] { registry.find("masks", "embed"); }),
            "model: expected a Vision Transformer, or a Hiera, got 'masks'");
  EXPECT_EQ(error_of([&] { registry.find(std::nullopt, "embed"); }),
            "model: expected a Vision Transformer, or a Hiera, got none among those served");
  registry.unload("masks");
  registry.load("small");
  EXPECT_EQ(error_of([&] { registry.find("small", "segment"); }),
            "model: expected one of Segment Anything, or a semantic segmenter, or CLIPSeg, got 'small'");
  EXPECT_EQ(
      error_of([&] { registry.find(std::nullopt, "segment"); }),
      "model: expected one of Segment Anything, or a semantic segmenter, or CLIPSeg, got none among those served");
  EXPECT_EQ(error_of([&] {
              ModelRegistry(options_with({{"a", "x"}, {"b", "y"}, {"a", "z"}}));
            }),
            "serve: expected different names of models, as -m NAME=MODEL gives them, got 'a' twice");
}

const tasks::ImageModel& images_of(const ServedModel& model) {
  return tasks::as_model<tasks::ImageModel>(model.loaded());
}

TEST(ServedModel, KnowsItsNamePrecisionAndKind) {
  const std::string sam = testing::sam_fixture("padded_windows").model.string();
  const ServedModel small({"s", testing::small_model()}, {.threads = 1});
  EXPECT_EQ(small.name(), "s");
  EXPECT_EQ(small.loaded().precision(), kernels::Precision::fp32);
  EXPECT_EQ(images_of(small).dual(), nullptr);
  EXPECT_TRUE(images_of(small).classifies());
  const ServedModel half({"h", testing::small_model()}, {.threads = 1, .precision = kernels::Precision::half});
  EXPECT_EQ(half.loaded().precision(), kernels::Precision::half);
  EXPECT_EQ(half.number(), small.number() + 1);
  const ServedModel clip({"c", testing::clip_model()}, {.threads = 1});
  EXPECT_NE(images_of(clip).dual(), nullptr);
  EXPECT_FALSE(images_of(clip).classifies()) << "a projection is no classifier";
  const ServedModel masks({"m", sam}, {.threads = 1, .precision = kernels::Precision::half});
  EXPECT_EQ(tasks::first_task(masks.loaded()).name, "segment");
  EXPECT_EQ(masks.loaded().precision(), kernels::Precision::half);
}

TEST(ServedModel, WithoutATokenizerItServesImagesOnly) {
  const auto folder = testing::scratch_folder() / "clip";
  std::filesystem::copy(testing::clip_model(), folder);
  std::filesystem::remove(folder / "vocab.json");
  std::filesystem::remove(folder / "merges.txt");
  const testing::Warnings warnings;
  const ServedModel model({"c", folder.string()}, {.threads = 1});
  EXPECT_EQ(images_of(model).dual(), nullptr);
  EXPECT_FALSE(images_of(model).classifies());
  EXPECT_EQ(images_of(model).images().config().vit.embed_dim,
            DualModel(testing::clip_model()).images().config().vit.embed_dim);
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_TRUE(warnings.messages[0].starts_with("c serves images only: ")) << warnings.messages[0];
}

TEST(Routes, AllHaveTheirNamesMethodsAndPaths) {
  std::string table;
  for (const Route& route : routes()) {
    std::string path;
    for (const std::string& segment : route.path) path += "/" + segment;
    table += route.name + " " + route.method + " " + path + (route.is_public() ? " public" : "") + "\n";
  }
  EXPECT_EQ(table,
            "classify POST /v1/classify\nembed POST /v1/embed\nzeroshot POST /v1/zeroshot\n"
            "attention POST /v1/attention\npca POST /v1/pca\nsegment POST /v1/segment\n"
            "depth POST /v1/depth\nmatte POST /v1/matte\ndetect POST /v1/detect\npose POST /v1/pose\nanomaly POST "
            "/v1/anomaly\nexplain POST /v1/explain\n"
            "embeddings POST /v1/embeddings\nmodels GET /v1/models\nmodel GET /v1/models/*\nlive GET /livez public\n"
            "ready GET /healthz public\nmetrics GET /metrics\npage GET  public\npage GET /page/* public\n"
            "openapi GET /openapi.json public\nv2_live GET /v2/health/live public\n"
            "v2_ready GET /v2/health/ready public\nv2_metadata GET /v2\nv2_statistics GET /v2/models/stats\n"
            "v2_statistics GET /v2/models/*/stats\nv2_statistics GET /v2/models/*/versions/*/stats\n"
            "v2_model GET /v2/models/*\nv2_model GET /v2/models/*/versions/*\n"
            "v2_config GET /v2/models/*/config\nv2_config GET /v2/models/*/versions/*/config\n"
            "v2_model_ready GET /v2/models/*/ready\nv2_model_ready GET /v2/models/*/versions/*/ready\n"
            "v2_infer POST /v2/models/*/infer\nv2_infer POST /v2/models/*/versions/*/infer\n"
            "v2_index POST /v2/repository/index\nv2_load POST /v2/repository/models/*/load\n"
            "v2_unload POST /v2/repository/models/*/unload\n");
}

}  // namespace
}  // namespace vitrail::serve
