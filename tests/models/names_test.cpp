// SPDX-License-Identifier: Apache-2.0
// Names of architectures, bundled models and traced values, and what is said where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/models/bundled.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/load.h"
#include "vitrail/models/missing_model_internal.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/traced_names.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;

// VITRAIL_HOME as long as the object lives.
class Home {
 public:
  explicit Home(const fs::path& folder) {
    if (const char* const before = std::getenv("VITRAIL_HOME")) before_ = before;
    ::setenv("VITRAIL_HOME", folder.c_str(), 1);
  }
  ~Home() { before_ ? ::setenv("VITRAIL_HOME", before_->c_str(), 1) : ::unsetenv("VITRAIL_HOME"); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

 private:
  std::optional<std::string> before_;
};

void make_model(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << "{}";
}

TEST(BundledModels, AreSortedAndTheFirstOfANameIsUsed) {
  const fs::path home = testing::scratch_folder();
  for (const char* name : {"zebra", "antelope", "imagenet-tiny"}) make_model(home / "models" / name);
  const Home here(home);
  const std::vector<BundledModel> models = bundled_models();
  EXPECT_TRUE(std::ranges::is_sorted(models, {}, &BundledModel::name));
  std::set<std::string> names;
  for (const BundledModel& model : models) EXPECT_TRUE(names.insert(model.name).second) << model.name;
  for (const char* name : {"zebra", "antelope", "imagenet-tiny"}) {
    ASSERT_TRUE(find_bundled(name)) << name;
    EXPECT_EQ(*find_bundled(name), home / "models" / name);
  }
  EXPECT_FALSE(find_bundled("zebr"));
  EXPECT_STREQ(kDefaultModel, "imagenet-tiny");
  EXPECT_STREQ(kDefaultSegmenter, "segment-tiny");
}

TEST(BundledModels, WithoutAnyFolderAreThoseOfTheOtherFolders) {
  const Home nowhere(testing::scratch_folder() / "absent");
  EXPECT_NO_THROW(bundled_models());
}

TEST(Registry, TagsAreNotFileExtensions) {
  const Architecture* const base = find_architecture("vit_base_patch16_224");
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->name, "vit_base_patch16_224");
  EXPECT_TRUE(base->in_timm);
  EXPECT_EQ(find_architecture("vit_base_patch16_224.a.b"), base);
  for (const char* extension : {"bin", "ckpt", "json", "npz", "pt", "pth", "safetensors"}) {
    EXPECT_EQ(find_architecture(str("vit_base_patch16_224.", extension)), nullptr) << extension;
  }
  EXPECT_EQ(find_architecture(""), nullptr);
  EXPECT_EQ(find_architecture(".fb_in1k"), nullptr);
  std::set<std::string> names;
  for (const Architecture& row : architectures()) {
    EXPECT_FALSE(row.credit.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name << ": each name once";
    EXPECT_EQ(find_architecture(row.name)->credit, row.credit) << row.name;
  }
}

TEST(Registry, SimilarNamesAreThreeNearestFirst) {
  const std::vector<std::string> names = similar_architectures("vit_base_patch16_clip_225.openai");
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0], "vit_base_patch16_clip_224");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 3u);
  EXPECT_EQ(similar_architectures("vit_tiny_patch16_224")[0], "vit_tiny_patch16_224");
  EXPECT_EQ(similar_architectures("deit_tiny_patch16_22")[0], "deit_tiny_patch16_224");
}

TEST(MissingModel, IsDescribedByWhatItsNameIs) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_EQ(describe_missing_model("s3://bucket/x"), "a URL; download the files first and give their folder");
  EXPECT_EQ(describe_missing_model("git+ssh2://x"), "a URL; download the files first and give their folder");
  fs::create_symlink("nowhere", folder / "link");
  EXPECT_EQ(describe_missing_model((folder / "link").string()), "a link to nothing");
  EXPECT_EQ(describe_missing_model("deit_tiny_patch16_224.fb_in1k"),
            "nothing there; timm's weights have the name timm/deit_tiny_patch16_224.fb_in1k on the hub");
  EXPECT_EQ(describe_missing_model("deit_tiny_patch16_224"),
            "nothing there; this is an architecture without weights: give the weights' file and --config "
            "deit_tiny_patch16_224");
  EXPECT_EQ(
      describe_missing_model("swin_tiny_patch4"),
      "nothing there; the name is of a Swin Transformer, which is not supported (`vitrail models` lists what is)");
  const fs::path empty = testing::scratch_folder();
  EXPECT_EQ(describe_missing_model((empty / "nothing").string()), "nothing there");
  std::ofstream(empty / "weights.bin") << "x";
  EXPECT_EQ(describe_missing_model((empty / "weight.bin").string()),
            "nothing there; near names: " + (empty / "weights.bin").string());
  EXPECT_TRUE(contains(describe_missing_model("sam_vit_bb"), "near names: sam_vit_b"));
  make_model(folder / "models" / "antelope-vit");
  const Home home(folder);
  EXPECT_TRUE(contains(describe_missing_model("antelope_vit"), "near names: antelope-vit"));
  // A name is searched in these folders; a path is not.
  const std::string nowhere = describe_missing_model("qqqqqqqqqqqqqqqqqq");
  EXPECT_TRUE(nowhere.starts_with("nothing there, nor in " + (folder / "models").string() + ", ")) << nowhere;
  EXPECT_TRUE(contains(nowhere, ", /usr/share/vitrail/models")) << nowhere;
  EXPECT_FALSE(contains(describe_missing_model("folder/qqqqqqqqqqqqqqqqqq"), "nor in"));
  // A file's name and a path are no architectures, and neither is a name without a word of one.
  for (const char* extension :
       {".bin", ".ckpt", ".gguf", ".h5", ".json", ".npz", ".onnx", ".pt", ".pth", ".tar", ".safetensors"}) {
    const std::string text = describe_missing_model(str("vit_bse_patch16_224", extension));
    EXPECT_FALSE(contains(text, "architectures of such a name")) << text;
    EXPECT_FALSE(contains(describe_missing_model(str("swin_tiny", extension)), "Swin")) << extension;
  }
  EXPECT_TRUE(
      contains(describe_missing_model("VIT_BSE_patch16_224"), "; architectures of such a name: vit_base_patch16_224"));
  EXPECT_FALSE(contains(describe_missing_model("qqqqqqqqqqqqqqqqqq"), "architectures"));
  EXPECT_FALSE(contains(describe_missing_model("folder/vit_bse_patch16_224"), "architectures"));
}

TEST(UnknownName, IsRefusedUnlessItIsAPath) {
  EXPECT_NO_THROW(refuse_unknown_name("folder/config"));
  EXPECT_NO_THROW(refuse_unknown_name("config.json"));
  EXPECT_TRUE(error_of([] { refuse_unknown_name("vit_tiny_patch16_24"); })
                  .starts_with("--config: expected a config.json or a registered architecture (like "
                               "vit_tiny_patch16_224, "));
  EXPECT_TRUE(error_of([] {
                refuse_unknown_name("swin_tiny");
              }).starts_with("--config: expected a plain Vision Transformer: "));
  const std::string message = error_of([] { refuse_unknown_name(std::string(300, 'x')); });
  EXPECT_TRUE(message.ends_with(", got \"" + std::string(80, 'x') + "\"")) << message;
}

TEST(TracedName, IsAPartOfTheLastAxis) {
  const Tensor value = Tensor::randn({2, 5, 12}, 1);
  EXPECT_EQ(TracedName{"x"}.of(value).storage(), value.storage());
  EXPECT_TRUE(testing::close(TracedName{"x"}.of(value), value, 0));
  for (int64_t part = 0; part < 3; ++part) {
    const TracedName name{"x", part, 3};
    EXPECT_TRUE(testing::close(name.of(value), value.narrow(2, 4 * part, 4), 0));
  }
  const std::vector<TracedName> names = traced_names("blocks.1.norm1");
  EXPECT_EQ(names[0].name, "blocks.1.norm1");
  EXPECT_EQ(names[0].parts, 1);
}

// Separate projections of another library are parts of ours.
TEST(TracedName, OfAFamilySaysWhichPartItIs) {
  const auto part_of = [](const std::string& name) {
    for (const TracedName& traced : traced_names(name)) {
      if (traced.name == "blocks.2.attn.qkv") return str(traced.part, " of ", traced.parts);
    }
    return std::string("none");
  };
  EXPECT_EQ(part_of("encoder.layers.2.self_attn.q_proj"), "0 of 3");
  EXPECT_EQ(part_of("encoder.layers.2.self_attn.k_proj"), "1 of 3");
  EXPECT_EQ(part_of("encoder.layers.2.self_attn.v_proj"), "2 of 3");
  EXPECT_EQ(part_of("encoder.layers.1.self_attn.v_proj"), "none");
}

TEST(TracedName, OfItsOwnFamilyComesFirst) {
  const weights::KeyMap own = weights::KeyMap::parse(
      R"~({"name": "own", "rules": [{"from": "body\\.(\\d+)\\.a\\.weight", "to": "blocks.$1.norm1.weight"}]})~", "map");
  const std::vector<TracedName> names = traced_names("body.2.a", &own);
  ASSERT_GE(names.size(), 2u);
  EXPECT_EQ(names[0].name, "body.2.a");
  EXPECT_EQ(names[1].name, "blocks.2.norm1");
  EXPECT_EQ(traced_names("body.2.a").size(), 1u);
}

TEST(JsonFields, LongValuesAreCutInMessages) {
  const auto got = [](size_t length) {
    const Json object{{"a", std::string(length, 'x')}};
    return error_of([&] { JsonFields(object, "file").integer("a"); });
  };
  EXPECT_ERROR(got(58), "file: a", "\"" + std::string(58, 'x') + "\"");
  EXPECT_ERROR(got(59), "file: a", "\"" + std::string(56, 'x') + "...");
  const Json object = Json::parse(R"({"i": 3, "f": 1e15, "g": 1000000000000001.0})");
  const JsonFields fields(object, "file");
  EXPECT_EQ(fields.path("i"), "file: i");
  EXPECT_EQ(fields.where(), "file");
  EXPECT_EQ(fields.nested("n").where(), "file: n");
  EXPECT_EQ(fields.at_or_null("i").dump(), "3");
  int64_t value = 5;
  JsonFields::assign(value, std::optional<int64_t>());
  EXPECT_EQ(value, 5);
  JsonFields::assign(value, fields.integer("i"));
  EXPECT_EQ(value, 3);
  EXPECT_THROW(fields.integer("g"), Error);
  EXPECT_ERROR(error_of([] { parse_json(std::string(201, '['), "file"); }), "file", "more");
}

}  // namespace
}  // namespace vitrail::models
