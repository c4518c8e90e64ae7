// SPDX-License-Identifier: Apache-2.0
// Values that commands print or write: statistics, numbers with exponents, rows that are refused, texts in arrays.
#include <cmath>

#include "tests/apps/option_effects.h"
#include "tests/support/golden.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/npy.h"
#include "vitrail/base/zip_internal.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// The small model with another tensor.
fs::path model_with(const std::string& name, const std::function<void(const Tensor&)>& change) {
  const fs::path folder = with_config("timm_token", [](nlohmann::json&) {});
  std::vector<std::pair<std::string, Tensor>> tensors;
  bool found = false;
  for (const auto& [key, tensor] : read_golden(folder / "model.safetensors").tensors) {
    tensors.emplace_back(key, tensor.clone());
    if (key != name) continue;
    change(tensors.back().second);
    found = true;
  }
  EXPECT_TRUE(found) << name;
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  return folder;
}

TEST(InspectValues, SmallAndLargeOnesHaveAnExponent) {
  const auto shown = [](double value) {
    const fs::path folder = model_with("head.bias", [&](const Tensor& bias) {
      std::fill_n(bias.data<float>(), 10, 0.0F);
      bias.data<float>()[1] = static_cast<float>(-value);
    });
    const std::string out = run({"inspect", folder, "--slice", "head.bias[:2]"}).out;
    return out.substr(out.find('\n') + 1);
  };
  EXPECT_EQ(shown(0), "[0.0000, -0.0000]\n");
  EXPECT_EQ(shown(0.0099), "[0.0000e+00, -9.9000e-03]\n");
  EXPECT_EQ(shown(0.0101), "[0.0000, -0.0101]\n");
  EXPECT_EQ(shown(1), "[0.0000, -1.0000]\n");
  EXPECT_EQ(shown(999999), "[0.0000, -999999.0000]\n");
  EXPECT_EQ(shown(1e6), "[0.0000e+00, -1.0000e+06]\n");
}

TEST(InspectValues, ARowHasTheMeanTheDeviationAndTheFirstValues) {
  const Tensor images = Tensor::randn({1, 3, 32, 32}, 1);
  const float* const data = images.data<float>();
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < images.numel(); ++i) sum += data[i];
  const auto count = static_cast<double>(images.numel());
  for (int64_t i = 0; i < images.numel(); ++i) squares += std::pow(data[i] - sum / count, 2);
  char want[256];
  std::snprintf(want, sizeof want, "%-32s %-24s %10.4f %10.4f  %.4f %.4f %.4f %.4f %.4f", "images", "[1, 3, 32, 32]",
                sum / count, std::sqrt(squares / count), data[0], data[1], data[2], data[3], data[4]);
  const std::vector<std::string> lines = lines_of(run({"inspect", "-m", small_model(), "--trace", "random"}).out);
  EXPECT_EQ(lines.at(1), want);
  const std::string few = run({"inspect", "layer:layer_norm", "--set", "features=2", "--set", "tokens=1"}).out;
  EXPECT_TRUE(contains(few, "    0.0000     1.0000  ") || contains(few, "   -0.0000     1.0000  ")) << few;
}

// Each layer's settings with their defaults, and other values of them.
struct LayerCase {
  std::string layer, defaults;
  std::vector<std::string> others;
};
void PrintTo(const LayerCase& layer, std::ostream* out) { *out << layer.layer; }
const std::vector<LayerCase> kLayerCases{
    {"patch_embed",
     "img_size=224 patch_size=16 in_chans=3 embed_dim=768 norm=false flatten=true",
     {"img_size=32", "patch_size=32", "in_chans=1", "embed_dim=8", "norm=true", "flatten=false"}},
    {"attention",
     "dim=512 num_heads=8 qkv_bias=false qk_norm=false split=false tokens=10",
     {"dim=64", "num_heads=4", "qkv_bias=true", "qk_norm=true", "split=true", "tokens=9"}},
    {"multihead_attention",
     "embed_dim=48 num_heads=4 bias=true queries=17 keys=17 mask=none padding=0 need_weights=true average_weights=true",
     {"embed_dim=8", "num_heads=2", "bias=false", "queries=3", "keys=5", "mask=causal", "padding=2",
      "need_weights=false", "average_weights=false"}},
    {"downsampled_attention",
     "embedding_dim=256 num_heads=8 downsample_rate=2 queries=5 keys=64",
     {"embedding_dim=64", "num_heads=4", "downsample_rate=1", "queries=3", "keys=7"}},
    {"mlp",
     "in_features=384 hidden_features=1536 out_features=384 act_layer=gelu sam_names=false norm=false tokens=65",
     {"in_features=8", "hidden_features=9", "out_features=7", "act_layer=relu", "sam_names=true", "norm=true",
      "tokens=3"}},
    {"block",
     "dim=384 num_heads=8 qkv_bias=false qk_norm=false split=false mlp_ratio=4 act_layer=gelu norm_first=true "
     "init_values=0 tokens=65",
     {"dim=64", "num_heads=4", "qkv_bias=true", "qk_norm=true", "split=true", "mlp_ratio=2", "act_layer=relu",
      "norm_first=false", "init_values=0.5", "tokens=3"}},
    {"layer_norm", "features=384 tokens=65 eps=1e-06", {"features=8", "tokens=3", "eps=0.5"}},
    {"layer_norm_2d", "channels=32 height=6 width=6 eps=1e-06", {"channels=8", "height=5", "width=4", "eps=0.5"}},
    {"positional_encoding", "dim=48 tokens=17 max_len=1000", {"dim=8", "tokens=3"}}};

class LayerSettingsTest : public ::testing::TestWithParam<LayerCase> {};

TEST_P(LayerSettingsTest, HaveTheirDefaultsAndEachHasAnEffect) {
  const LayerCase& layer = GetParam();
  const auto shown = [&](const Arguments& more) {
    const std::string out = run(Arguments{"inspect", "layer:" + layer.layer} + more).out;
    const size_t end = out.find('\n');
    return std::pair(out.substr(0, end), out.substr(end));
  };
  const auto [settings, values] = shown({});
  EXPECT_EQ(settings, layer.defaults);
  for (const std::string& other : layer.others) {
    const auto [changed, result] = shown({"--set", other});
    EXPECT_TRUE(contains(" " + changed + " ", " " + other + " ")) << changed;
    EXPECT_NE(result, values) << other;
  }
}
INSTANTIATE_TEST_SUITE_P(All, LayerSettingsTest, ::testing::ValuesIn(kLayerCases),
                         [](const auto& info) { return info.param.layer; });

// The last keys are padding: no query attends to them, and to all others.
TEST(InspectLayer, PaddingIsOfTheLastKeys) {
  for (const int padding : {1, 2, 4}) {
    const std::string out = run({"inspect", "layer:multihead_attention", "--set", "queries=2", "--set", "keys=5",
                                 "--set", "padding=" + std::to_string(padding), "--slice", "returned_weights[0, 0]"})
                                .out;
    const std::string row = out.substr(out.find('\n') + 2);
    size_t at = 0, zeros = 0;
    for (int key = 0; key < 5; ++key, at = row.find(", ", at) + 2) {
      const double weight = std::stod(row.substr(at));
      EXPECT_EQ(weight == 0, key >= 5 - padding) << out;
      zeros += weight == 0;
    }
    EXPECT_EQ(zeros, static_cast<size_t>(padding));
  }
}

TEST(InspectLayer, SettingsAreNumbersInRangeTrueOrFalse) {
  const auto error_with = [](const std::string& layer, const std::string& setting) {
    const ProgramResult result = run_program({"inspect", "layer:" + layer, "--set", setting});
    EXPECT_EQ(result.status, 1) << setting;
    return result.err;
  };
  for (const char* value : {"0", "-1", "1048577", "1.5", "x", "", "3 "})
    EXPECT_TRUE(contains(error_with("mlp", "tokens=" + std::string(value)),
                         "--set tokens: expected an integer from 1 "
                         "to 1048576, got"))
        << value;
  EXPECT_TRUE(contains(error_with("multihead_attention", "padding=-1"), "an integer from 0 to 1048576"));
  for (const char* value : {"-0.1", "x", "", "1x"})
    EXPECT_TRUE(contains(error_with("block", "mlp_ratio=" + std::string(value)), "expected a number of at least 0"));
  for (const char* value : {"True", "1", "", "yes"})
    EXPECT_TRUE(contains(error_with("mlp", "norm=" + std::string(value)), "--set norm: expected true or false, got"));
  for (const char* setting : {"tokens", "=3", ""}) {
    const ProgramResult result = run_program({"inspect", "layer:mlp", "--set", setting});
    EXPECT_NE(result.status, 0) << setting;
  }
  EXPECT_TRUE(contains(run({"inspect", "layer:mlp", "--set", "tokens=3", "--set", "tokens=4"}).out, " tokens=4\n"))
      << "the last one counts";
}

// Features beyond fp16's range would become infinite.
TEST(EmbedHalf, ValuesBeyondItsRangeAreAnErrorOfTheirImage) {
  const fs::path folder = model_with("norm.weight", [](const Tensor& weight) {
    for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= 1e6F;
  });
  const fs::path images = image_folder(1), file = scratch_folder() / "f.npy";
  const ProgramResult result = run_program({"embed", "-m", folder, images / "a.png", "-o", file, "--dtype", "fp16"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "a.png: --dtype fp16: expected values up to 65504")) << result.err;
  for (const float value : read_npy(file).f32) EXPECT_TRUE(std::isnan(value));
  run({"embed", "-m", folder, images / "a.png", "-o", file, "--dtype", "fp16", "--normalize"});
  run({"embed", "-m", folder, images / "a.png", "-o", file});
}

TEST(ClassifyOverflow, LogitsThatAreNotFiniteAreAnErrorOfTheirImage) {
  const fs::path folder =
      model_with("head.weight", [](const Tensor& weight) { std::fill_n(weight.data<float>(), weight.numel(), 3e38F); });
  const fs::path images = image_folder(2);
  for (const std::string format : {"text", "json", "csv"}) {
    const ProgramResult result = run_program({"classify", "-m", folder, images, "--format", format});
    EXPECT_EQ(result.status, 1) << format;
    EXPECT_TRUE(contains(result.err, "a.png: ") && contains(result.err, "expected finite logits")) << result.err;
    if (format == "json") {
      ASSERT_EQ(json_lines(result.out).size(), 2U);
      for (const auto& object : json_lines(result.out)) EXPECT_TRUE(object.contains("error")) << object;
    }
    if (format == "csv") {
      const std::vector<std::string> rows = lines_of(result.out);
      ASSERT_EQ(rows.size(), 3U);
      EXPECT_TRUE(contains(rows[1], ".png,,,,,") && contains(rows[1], "finite logits")) << rows[1];
    }
  }
}

// numpy's strings have a code point of four bytes for each character.
TEST(EmbedNpz, PathsAreTextOfAllOfUnicode) {
  const fs::path folder = image_folder(6), file = scratch_folder() / "f.npz";
  const std::vector<std::pair<std::string, std::u32string>> names{
      {"1 a\xc3\xa9.png", U"1 aé.png"},       {"2 \xe2\x82\xac.png", U"2 €.png"},
      {"3 \xf0\x9f\x98\x80.png", U"3 😀.png"}, {"4 plain and long.png", U"4 plain and long.png"},
      {"5 \xd1\x8f.png", U"5 \u044f.png"},    {"6 \xed\x95\x9c.png", U"6 \ud55c.png"}};
  for (size_t i = 0; i < names.size(); ++i)
    fs::rename(folder / (std::string(1, static_cast<char>('a' + i)) + ".png"), folder / names[i].first);
  run({"embed", "-m", small_model(), folder, "-o", file});
  const MappedFile mapped(file);
  const ZipReader zip(mapped.bytes(), file.string());
  const std::vector<std::byte> array = zip.read(*zip.find("paths.npy"), 1 << 20);
  const std::string_view text(reinterpret_cast<const char*>(array.data()), array.size());
  const size_t before = folder.string().size() + 1, length = before + names[3].second.size();
  EXPECT_TRUE(contains(std::string(text), "'<U" + std::to_string(length) + "'")) << text.substr(0, 100);
  ASSERT_GE(text.size(), 4 * 6 * length);
  const std::string_view elements = text.substr(text.size() - 4 * 6 * length);
  for (size_t i = 0; i < 6; ++i) {
    std::u32string path(length, U'\0');
    std::memcpy(path.data(), elements.data() + 4 * length * i, 4 * length);
    std::u32string want = std::u32string(before, U'?') + names[i].second;
    want.resize(length, U'\0');
    std::fill_n(path.begin(), before, U'?');
    EXPECT_TRUE(path == want) << names[i].first;
  }
}

// Vectors of another width than the index's, narrower or wider.
TEST(SearchWidth, QueriesOfAnotherModelsWidthAreRefused) {
  const fs::path folder = scratch_folder(), images = image_folder(1);
  for (const int64_t width : {17, 19}) {  // the model's is 18
    const fs::path array = folder / (std::to_string(width) + ".npy");
    const std::vector<float> row(static_cast<size_t>(width), 1.0F);
    write_npy(array, std::array{int64_t{1}, width}, row.data());
    std::ofstream(fs::path(array).replace_extension(".txt")) << "x.png\n";
    run({"index", array, "-o", folder / "i"});
    const ProgramResult result = run_program({"search", folder / "i", "-m", small_model(), images / "a.png"});
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, "expected vectors of width 18, got " + std::to_string(width))) << result.err;
  }
}

// An image of either set that cannot be read.
TEST(KnnFailures, OfEachSetAreTheStatus) {
  for (const bool in_training : {true, false}) {
    const fs::path train = scratch_folder(), test = scratch_folder();
    for (const auto& [root, first] : {std::pair(train, 1), std::pair(test, 5)}) {
      write_noise(root / "a/1.png", 32, 32, static_cast<uint64_t>(first));
      write_noise(root / "b/1.png", 32, 32, static_cast<uint64_t>(first + 1));
    }
    EXPECT_EQ(run_program({"knn", "-m", small_model(), train, test, "--k", "1", "--quiet"}).status, 0);
    std::ofstream((in_training ? train : test) / "a/2.png") << "no image";
    const ProgramResult result = run_program({"knn", "-m", small_model(), train, test, "--k", "1", "--quiet"});
    EXPECT_EQ(result.status, 1) << in_training;
    const auto object = json_lines(result.out).at(0);
    EXPECT_EQ(object["images"], 2);
    EXPECT_EQ(object["training_images"], 2);
    EXPECT_EQ(object["k"], 1);
  }
}

// The options, then the model: what a folder's earlier shards have.
// The name up to its first dot, with its folders, whose dots do not count.
TEST(EmbedShards, RecordsHaveTheKeysOfWebdataset) {
  const fs::path folder = image_folder(3), out = scratch_folder() / "features";
  fs::create_directories(folder / "v1.5");
  fs::rename(folder / "a.png", folder / "a.b.png");
  fs::rename(folder / "b.png", folder / "v1.5" / "b.seg.png");
  ASSERT_EQ(shell("cd '" + folder.string() + "' && tar -cf 1.tar a.b.png v1.5/b.seg.png c.png"), 0);
  run({"embed", "-m", small_model(), folder / "1.tar", "-o", out});
  std::vector<std::string> keys;
  for (const auto& record : json_lines(content_of(out / "1.jsonl"))) keys.push_back(record["key"]);
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "c", "v1.5/b"}));
}

TEST(EmbedShards, OfOtherOptionsAreRefused) {
  const fs::path folder = image_folder(1), out = scratch_folder() / "features";
  for (const char* name : {"1.tar", "2.tar"})
    ASSERT_EQ(shell("tar -C '" + folder.string() + "' -cf '" + (folder / name).string() + "' a.png"), 0);
  const Arguments first{"embed", "-m", small_model(), folder / "1.tar", "-o", out},
      second{"embed", "-m", small_model(), folder / "2.tar", "-o", out};
  run(first + Arguments{"--no-norm", "--tokens", "cls", "--layer", "0"});
  const Arguments same{"--no-norm", "--tokens", "cls", "--layer", "0"};
  for (const Arguments& other : {Arguments{"--tokens", "cls", "--layer", "0"}, Arguments{"--no-norm", "--layer", "0"},
                                 Arguments{"--no-norm", "--tokens", "cls"}, same + Arguments{"--normalize"}}) {
    const ProgramResult result = run_program(second + other);
    EXPECT_EQ(result.status, 1) << ::testing::PrintToString(other);
    EXPECT_TRUE(contains(result.err, out.string() + ": expected embeddings ")) << result.err;
    EXPECT_FALSE(fs::exists(out / "2.npy"));
  }
  run(second + same);
  EXPECT_TRUE(fs::exists(out / "2.npy"));
}

}  // namespace
}  // namespace vitrail::testing
