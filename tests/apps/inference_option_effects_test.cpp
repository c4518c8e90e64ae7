// SPDX-License-Identifier: Apache-2.0
// Options of classify, embed, attention, eval and knn, compared with the library's results.
#include <cmath>
#include <limits>

#include "tests/apps/option_effects.h"
#include "vitrail/analysis/attention_map.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/overlay.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using infer::Output;
using infer::Request;
using infer::Tokens;
using Values = std::vector<float>;

// The small model in the library.
class Library {
 public:
  Library()
      : opened_(models::open_model(small_model())),
        transform_(infer::transform_of(opened_.config.preprocessing, "small model")),
        session_(models::build_model(opened_)) {}

  std::vector<Tensor> run(const fs::path& image, const Request& request = {}) const {
    return session_.run(image::apply(image::read_image(image), transform_).unsqueeze(0), request);
  }
  Values values(const fs::path& image, const Request& request = {}) const {
    const Tensor result = run(image, request)[0].contiguous();
    return {result.data<float>(), result.data<float>() + result.numel()};
  }
  image::Image input_pixels(const fs::path& image) const {
    return image::apply_geometry(image::read_image(image), transform_);
  }

 private:
  models::OpenedModel opened_;
  image::EvalTransform transform_;
  infer::Session session_;
};

const Library& library() {
  static const Library model;
  return model;
}

fs::path image(const char* name) { return noise_folder() / name; }

// Both images' results, one after the other.
Values library_values(const Request& request = {}) {
  Values both = library().values(image("a.png"), request);
  const Values second = library().values(image("b.png"), request);
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

Arguments classify(const Arguments& more) {
  return Arguments{"classify", "-m", small_model(), noise_folder(), "--format", "json"} + more;
}

// FILE with one name per line: "name 0" to "name 9".
fs::path names_file() {
  const fs::path file = scratch_folder() / "names.txt";
  std::ofstream out(file);
  for (int i = 0; i < 10; ++i) out << "name " << i << "\n";
  return file;
}

void check_top() {
  const auto all = json_of(classify({"--top", "10"}))["predictions"];
  for (const int top : {1, 3, 5, 9}) {
    auto first = all;
    first.erase(first.begin() + top, first.end());
    EXPECT_EQ(json_of(classify({"--top", std::to_string(top)}))["predictions"], first);
    if (top == 5) {
      EXPECT_EQ(json_of(classify({}))["predictions"], first) << "the default";
    }
  }
}

void check_labels_of_classify() {
  for (const auto& prediction : json_of(classify({"--labels", names_file(), "--top", "10"}))["predictions"]) {
    EXPECT_EQ(prediction["label"], "name " + std::to_string(prediction["index"].get<int>()));
  }
  EXPECT_EQ(json_of(classify({}))["predictions"][0]["label"].get<std::string>().substr(0, 6), "class ");
}

void check_logits_of_classify() {
  const fs::path file = scratch_folder() / "logits.npy";
  run(classify({"--logits", file}));
  const NpyArray logits = read_npy(file);
  EXPECT_EQ(logits.shape, (std::vector<int64_t>{2, 10}));
  EXPECT_EQ(logits.f32, library_values());
}

void check_format() {
  const Arguments arguments{"classify", "-m", small_model(), image("a.png"), "--top", "1"};
  const auto best = json_of(arguments + Arguments{"--format", "json"})["predictions"][0];
  const std::string label = best["label"], index = std::to_string(best["index"].get<int>());
  const std::string text = run(arguments + Arguments{"--format", "text"}).out;
  EXPECT_EQ(lines_of(text).size(), 2u);
  EXPECT_TRUE(text.ends_with("%  " + label + "\n")) << text;
  EXPECT_EQ(run(arguments).out, text) << "the default";
  const auto csv = lines_of(run(arguments + Arguments{"--format", "csv"}).out);
  ASSERT_EQ(csv.size(), 2u);
  EXPECT_TRUE(csv[1].starts_with(image("a.png").string() + ",1," + index + "," + label + ",")) << csv[1];
}

NpyArray embedded(const Arguments& more) {
  const fs::path file = scratch_folder() / "features.npy";
  run(Arguments{"embed", "-m", small_model(), noise_folder(), "-o", file} + more);
  return read_npy(file);
}

void check_output_of_embed() {
  const fs::path file = scratch_folder() / "named.npy";
  run({"embed", "-m", small_model(), noise_folder(), "--output", file});
  EXPECT_EQ(read_npy(file).f32, library_values({.output = Output::features}));
  const std::string list = content_of(fs::path(file).replace_extension(".txt"));
  EXPECT_EQ(list, image("a.png").string() + "\n" + image("b.png").string() + "\n");
}

const std::map<std::string, Tokens> kTokens{
    {"pooled", Tokens::pooled}, {"cls", Tokens::cls}, {"patch", Tokens::patch}, {"all", Tokens::all}};

void check_tokens() {
  for (const auto& [name, tokens] : kTokens) {
    EXPECT_EQ(embedded({"--tokens", name}).f32, library_values({.output = Output::features, .tokens = tokens})) << name;
  }
  EXPECT_EQ(embedded({}).f32, embedded({"--tokens", "pooled"}).f32);
  EXPECT_EQ(embedded({"--tokens", "patch"}).shape, (std::vector<int64_t>{2, 16, 18}));
}

void check_layer_of_embed() {
  for (const int layer : {0, 1, -1, -2}) {
    const Values want = library_values({.output = Output::features, .tokens = Tokens::all, .layer = layer});
    EXPECT_EQ(embedded({"--tokens", "all", "--layer", std::to_string(layer)}).f32, want) << layer;
  }
  EXPECT_NE(embedded({"--layer", "0"}).f32, embedded({}).f32);
}

void check_no_norm() {
  for (const auto& [name, tokens] : kTokens) {
    const Request request{.output = Output::features, .tokens = tokens, .normalize = false};
    EXPECT_EQ(embedded({"--tokens", name, "--no-norm"}).f32, library_values(request)) << name;
    EXPECT_NE(embedded({"--tokens", name}).f32, library_values(request)) << name;
  }
}

// Every vector, also of one token of many, has length 1 and its direction.
void check_normalize() {
  const size_t width = 18;
  for (const auto& [name, tokens] : kTokens) {
    const Values got = embedded({"--tokens", name, "--normalize"}).f32;
    const Values plain = embedded({"--tokens", name}).f32;
    ASSERT_EQ(got.size(), plain.size());
    for (size_t begin = 0; begin < got.size(); begin += width) {
      double squares = 0;
      for (size_t i = 0; i < width; ++i) squares += static_cast<double>(plain[begin + i]) * plain[begin + i];
      for (size_t i = 0; i < width; ++i) {
        EXPECT_NEAR(got[begin + i], plain[begin + i] / std::sqrt(squares), 2e-7) << name << ' ' << begin << ' ' << i;
      }
    }
  }
}

// The pixels that attention writes.
std::vector<uint8_t> attention_pixels(const Arguments& more) {
  const fs::path file = scratch_folder() / "map.png";
  run(Arguments{"attention", "-m", small_model(), image("a.png"), "-o", file} + more);
  return image::read_image(file).pixels;
}

// The weights of both blocks, [H, N, N] each.
std::vector<Tensor> attention_weights() {
  std::vector<Tensor> blocks;
  for (const Tensor& block : library().run(image("a.png"), {.output = Output::attention, .all_layers = true}))
    blocks.push_back(block.select(0, 0));
  return blocks;
}

// The overlay of what the class token attends to, in weights [N, N].
image::Image overlay_of(const Tensor& weights) {
  const Tensor map = analysis::patch_attention(weights, true, 1, {4, 4});
  return image::overlay(library().input_pixels(image("a.png")),
                        {.values = {map.data<float>(), 16}, .width = 4, .height = 4});
}

std::vector<uint8_t> overlay_of_mean(const Tensor& block) {
  return overlay_of(analysis::mean_over_heads(block)).pixels;
}

void check_output_of_attention() {
  const auto blocks = attention_weights();
  EXPECT_EQ(attention_pixels({}), overlay_of_mean(blocks[1]));
  const ProgramResult result = run({"attention", "-m", small_model(), image("a.png"), "--output", "-"});
  const fs::path file = scratch_folder() / "piped.png";
  std::ofstream(file, std::ios::binary) << result.out;
  EXPECT_EQ(image::read_image(file).pixels, overlay_of_mean(blocks[1]));
}

void check_layer_of_attention() {
  const auto blocks = attention_weights();
  ASSERT_NE(overlay_of_mean(blocks[0]), overlay_of_mean(blocks[1]));
  const fs::path raw = scratch_folder() / "raw.npy";
  for (const int layer : {0, 1, -1, -2}) {
    const std::string text = std::to_string(layer);
    const auto want = overlay_of_mean(blocks[static_cast<size_t>(layer < 0 ? layer + 2 : layer)]);
    EXPECT_EQ(attention_pixels({"--layer", text}), want) << layer;
    EXPECT_EQ(attention_pixels({"--layer", text, "--raw", raw}), want) << layer;
  }
}

void check_head() {
  const Tensor block = attention_weights()[1];
  const image::Image heads[] = {overlay_of(block.select(0, 0)), overlay_of(block.select(0, 1))};
  ASSERT_NE(heads[0].pixels, heads[1].pixels);
  EXPECT_EQ(attention_pixels({"--head", "0"}), heads[0].pixels);
  EXPECT_EQ(attention_pixels({"--head", "1"}), heads[1].pixels);
  EXPECT_EQ(attention_pixels({"--head", "all"}), image::grid(heads).pixels);
  EXPECT_EQ(attention_pixels({"--head", "mean"}), overlay_of_mean(block));
}

void check_rollout() {
  const auto blocks = attention_weights();
  const auto want = overlay_of(analysis::attention_rollout(blocks)).pixels;
  EXPECT_EQ(attention_pixels({"--rollout"}), want);
  EXPECT_NE(attention_pixels({"--rollout"}), attention_pixels({}));
  EXPECT_NE(overlay_of(analysis::attention_rollout({blocks[1], blocks[0]})).pixels, want) << "their order must matter";
}

void check_raw() {
  const fs::path file = scratch_folder() / "raw.npy";
  run({"attention", "-m", small_model(), image("a.png"), "--raw", file});
  const NpyArray raw = read_npy(file);
  EXPECT_EQ(raw.shape, (std::vector<int64_t>{2, 2, 17, 17}));
  Values want;
  for (const Tensor& block : attention_weights()) {
    const Tensor dense = block.contiguous();
    want.insert(want.end(), dense.data<float>(), dense.data<float>() + dense.numel());
  }
  EXPECT_EQ(raw.f32, want);
}

// ROOT/SPLIT/CLASS/N.png with another number of images in each split.
fs::path splits_dataset() {
  const fs::path root = scratch_folder();
  int count = 0;
  for (const std::string split : {"test", "val", "train"}) {
    ++count;
    for (int i = 0; i < count; ++i)
      write_noise(root / split / "3" / (std::to_string(i) + ".png"), 32, 32, static_cast<uint64_t>(10 * count + i));
  }
  return root;
}

void check_split() {
  const Arguments arguments{"eval", "-m", small_model(), splits_dataset()};
  EXPECT_EQ(json_of(arguments)["images"], 1) << "test";
  EXPECT_EQ(json_of(arguments + Arguments{"--split", "val"})["images"], 2);
  EXPECT_EQ(json_of(arguments + Arguments{"--split", "train"})["images"], 3);
}

// The folder named after the predicted class is right, another one wrong.
void check_labels_of_eval() {
  const int predicted = json_of(classify({"--top", "1"}))["predictions"][0]["index"];
  for (const int label : {predicted, (predicted + 1) % 10}) {
    const fs::path root = scratch_folder(), folder = root / ("name " + std::to_string(label));
    fs::create_directories(folder);
    fs::copy_file(image("a.png"), folder / "a.png");
    const Arguments arguments{"eval", "-m", small_model(), root};
    EXPECT_EQ(json_of(arguments + Arguments{"--labels", names_file()})["top1"], label == predicted ? 1 : 0);
    EXPECT_EQ(run_program(arguments).status, 1) << "the model has no such classes";
  }
}

// An image that cannot be read is a row of NaN in its place.
void check_logits_of_eval() {
  const fs::path root = scratch_folder(), file = root / "logits.npy";
  for (const char* name : {"a.png", "b.png"}) fs::copy_file(image(name), root / name);
  std::ofstream(root / "broken.png") << "no image";
  std::ofstream(root / "list.csv") << "a.png,0\nbroken.png,1\nb.png,2\n";
  EXPECT_EQ(run_program({"eval", "-m", small_model(), root / "list.csv", "--logits", file}).status, 1);
  const NpyArray logits = read_npy(file);
  ASSERT_EQ(logits.shape, (std::vector<int64_t>{3, 10}));
  const Values want = library_values();
  EXPECT_EQ(Values(logits.f32.begin(), logits.f32.begin() + 10), Values(want.begin(), want.begin() + 10));
  for (int i = 10; i < 20; ++i) EXPECT_TRUE(std::isnan(logits.f32[static_cast<size_t>(i)])) << i;
  EXPECT_EQ(Values(logits.f32.begin() + 20, logits.f32.end()), Values(want.begin() + 10, want.end()));
}

// The test image is a training image of class "a"; class "b" has the two next neighbours.
class KnnVotes {
 public:
  KnnVotes() {
    write_noise(train_ / "a/1.png", 32, 32, 1);
    write_noise(train_ / "b/2.png", 32, 32, 2);
    write_noise(train_ / "b/3.png", 32, 32, 3);
    write_noise(test_ / "a/1.png", 32, 32, 1);
  }
  nlohmann::json result(const Arguments& more) const {
    return json_of(Arguments{"knn", "-m", small_model(), train_, test_, "--quiet"} + more);
  }

 private:
  fs::path train_ = scratch_folder(), test_ = scratch_folder();
};

void check_k() {
  const KnnVotes votes;
  for (const int k : {1, 3}) {
    const auto result = votes.result({"--k", std::to_string(k), "--plain"});
    EXPECT_EQ(result["k"], k);
    EXPECT_EQ(result["top1"], k == 1 ? 1 : 0) << "one vote against two";
  }
  EXPECT_EQ(votes.result({})["k"], 20);
}

void check_temperature() {
  const KnnVotes votes;
  EXPECT_EQ(votes.result({"--k", "3", "--temperature", "0.0001"})["top1"], 1) << "the nearest decides";
  EXPECT_EQ(votes.result({"--k", "3", "--temperature", "100"})["top1"], 0) << "all count alike";
}

void check_plain() {
  const KnnVotes votes;
  EXPECT_EQ(votes.result({"--k", "3", "--temperature", "0.0001", "--plain"})["top1"], 0);
  EXPECT_EQ(votes.result({"--k", "3", "--temperature", "0.0001", "--uniform"})["top1"], 0);
}

nlohmann::json knn_of_splits(const Arguments& more) {
  const fs::path root = splits_dataset();
  return json_of(Arguments{"knn", "-m", small_model(), root, root, "--k", "1", "--quiet"} + more);
}

void check_train_split() {
  EXPECT_EQ(knn_of_splits({})["training_images"], 3) << "train";
  EXPECT_EQ(knn_of_splits({"--train-split", "val"})["training_images"], 2);
  EXPECT_EQ(knn_of_splits({"--train-split", "val"})["images"], 1);
}

void check_test_split() {
  EXPECT_EQ(knn_of_splits({})["images"], 1) << "test";
  EXPECT_EQ(knn_of_splits({"--test-split", "val"})["images"], 2);
  EXPECT_EQ(knn_of_splits({"--test-split", "val"})["training_images"], 3);
}

}  // namespace

OptionEffects inference_option_effects() {
  return {{"classify", "--top", check_top},
          {"classify", "--labels", check_labels_of_classify},
          {"classify", "--logits", check_logits_of_classify},
          {"classify", "--format", check_format},
          {"embed", "-o,--output", check_output_of_embed},
          {"embed", "--tokens", check_tokens},
          {"embed", "--layer", check_layer_of_embed},
          {"embed", "--no-norm", check_no_norm},
          {"embed", "--normalize", check_normalize},
          {"attention", "-o,--output", check_output_of_attention},
          {"attention", "--layer", check_layer_of_attention},
          {"attention", "--head", check_head},
          {"attention", "--rollout", check_rollout},
          {"attention", "--raw", check_raw},
          {"eval", "--split", check_split},
          {"eval", "--labels", check_labels_of_eval},
          {"eval", "--logits", check_logits_of_eval},
          {"knn", "--k", check_k},
          {"knn", "--temperature", check_temperature},
          {"knn", "--uniform,--plain", check_plain},
          {"knn", "--train-split", check_train_split},
          {"knn", "--test-split", check_test_split}};
}

}  // namespace vitrail::testing
