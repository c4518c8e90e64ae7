// SPDX-License-Identifier: Apache-2.0
// Options of classify, embed, attention, eval and knn, compared with the library's results.
#include <cmath>
#include <limits>
#include <set>

#include "tests/apps/option_effects.h"
#include "vitrail/analysis/attention_map.h"
#include "vitrail/analysis/pca.h"
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
  // squashed: with the options --crop-mode squash --crop-pct 1
  explicit Library(bool squashed)
      : opened_(models::open_model(small_model())),
        transform_(infer::transform_of(opened_.config.preprocessing, "small model")),
        session_(models::build_model(opened_)) {
    if (!squashed) return;
    transform_.crop_mode = image::CropMode::squash;
    transform_.crop_pct = 1;
  }

  std::vector<Tensor> run(const fs::path& image, const Request& request = {}) const {
    return session_.run(image::apply(image::read_image(image), transform_).unsqueeze(0), request);
  }
  Values values(const fs::path& image, const Request& request = {}) const {
    const Tensor result = run(image, request)[0].contiguous();
    return {result.data<float>(), result.data<float>() + result.numel()};
  }

 private:
  models::OpenedModel opened_;
  image::EvalTransform transform_;
  infer::Session session_;
};

const Library& library() {
  static const Library model(false);
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

void check_top_of_classify() {
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
  const nlohmann::json named = json_of(classify({"--labels", names_file(), "--top", "10"}));
  ASSERT_EQ(named["predictions"].size(), 10u);
  for (const auto& prediction : named["predictions"]) {
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

void check_format_of_classify() {
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

void check_dtype_of_embed() {
  const NpyArray exact = embedded({}), half = embedded({"--dtype", "fp16"});
  EXPECT_EQ(embedded({"--dtype", "fp32"}).f32, exact.f32);
  EXPECT_EQ(half.dtype, DType::f16);
  ASSERT_EQ(half.shape, exact.shape);
  for (size_t i = 0; i < exact.f32.size(); ++i) EXPECT_EQ(half.f32[i], static_cast<float>(Float16(exact.f32[i]))) << i;
  const fs::path csv = scratch_folder() / "features.csv";
  EXPECT_EQ(run_program({"embed", "-m", small_model(), noise_folder(), "-o", csv, "--dtype", "fp16"}).status, 2);
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
    EXPECT_EQ(embedded({"--tokens", name}).f32,
              library_values({.output = Output::features, .features = {.tokens = tokens}}))
        << name;
  }
  EXPECT_EQ(embedded({}).f32, embedded({"--tokens", "pooled"}).f32);
  EXPECT_EQ(embedded({"--tokens", "patch"}).shape, (std::vector<int64_t>{2, 4, 4, 18}));
}

void check_layer_of_embed() {
  for (const int layer : {0, 1, -1, -2}) {
    const Values want =
        library_values({.output = Output::features, .features = {.tokens = Tokens::all, .layers = {layer}}});
    EXPECT_EQ(embedded({"--tokens", "all", "--layer", std::to_string(layer)}).f32, want) << layer;
  }
  EXPECT_NE(embedded({"--layer", "0"}).f32, embedded({}).f32);
  const NpyArray both = embedded({"--tokens", "patch", "--layer", "-1,0"});
  EXPECT_EQ(both.shape, (std::vector<int64_t>{2, 2, 4, 4, 18}));
  EXPECT_EQ(both.f32,
            library_values({.output = Output::features, .features = {.tokens = Tokens::patch, .layers = {-1, 0}}}));
}

void check_no_norm() {
  for (const auto& [name, tokens] : kTokens) {
    const Request request{.output = Output::features, .features = {.tokens = tokens, .final_norm = false}};
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

// The figure that attention writes of an image that the model sees in full.
image::Image attention_figure(const Arguments& more) {
  const fs::path file = scratch_folder() / "map.png";
  run(Arguments{"attention", "-m", small_model(), image("a.png"), "-o", file, "--crop-mode", "squash", "--crop-pct",
                "1"} +
      more);
  return image::read_image(file);
}

// The weights of both blocks, [H, N, N] each.
std::vector<Tensor> attention_weights(bool squashed = true) {
  static const Library squashing(true);
  std::vector<Tensor> blocks;
  const Library& model = squashed ? squashing : library();
  for (const Tensor& block : model.run(image("a.png"), {.output = Output::attention, .all_layers = true}))
    blocks.push_back(block.select(0, 0));
  return blocks;
}

// The image under what a token attends to, in weights [N, N] of a class token and 4 × 4 patches.
image::Image overlay_of(const Tensor& weights, int64_t query = 0) {
  const Tensor map = analysis::patch_attention(weights, query, 1, {4, 4});
  return image::overlay(image::read_image(image("a.png")),
                        {.values = {map.data<float>(), 16}, .width = 4, .height = 4});
}

image::Image overlay_of_mean(const Tensor& block) { return overlay_of(analysis::mean_over_heads(block)); }

// Whether the overlay is in the figure, at the right of the image, but for some values of pixels.
bool shows(const image::Image& figure, const image::Image& overlay, int64_t allowed = 0) {
  for (int64_t left = overlay.width; left + overlay.width <= figure.width; ++left) {
    int64_t different = 0;
    for (int64_t y = 0; different <= allowed && y < overlay.height; ++y) {
      const uint8_t *want = overlay.row(y), *got = figure.row(y) + 3 * left;
      for (int64_t i = 0; i < overlay.row_bytes(); ++i) different += want[i] != got[i];
    }
    if (different <= allowed) return true;
  }
  return false;
}

void check_output_of_attention() {
  const image::Image figure = attention_figure({});
  EXPECT_TRUE(shows(figure, overlay_of_mean(attention_weights()[1])));
  const ProgramResult result = run(
      {"attention", "-m", small_model(), image("a.png"), "--crop-mode", "squash", "--crop-pct", "1", "--output", "-"});
  const fs::path file = scratch_folder() / "piped.png";
  std::ofstream(file, std::ios::binary) << result.out;
  EXPECT_EQ(image::read_image(file).pixels, figure.pixels);
}

void check_layer_of_attention() {
  const auto blocks = attention_weights();
  const fs::path raw = scratch_folder() / "raw.npy";
  for (const int layer : {0, 1, -1, -2}) {
    const std::string text = std::to_string(layer);
    const size_t index = static_cast<size_t>(layer < 0 ? layer + 2 : layer);
    for (const Arguments& more : {Arguments{}, Arguments{"--raw", raw}}) {
      const image::Image figure = attention_figure(Arguments{"--layer", text} + more);
      EXPECT_TRUE(shows(figure, overlay_of_mean(blocks[index]))) << layer;
      EXPECT_FALSE(shows(figure, overlay_of_mean(blocks[1 - index]))) << layer;
    }
  }
}

void check_head() {
  const Tensor block = attention_weights()[1];
  const image::Image heads[] = {overlay_of(block.select(0, 0)), overlay_of(block.select(0, 1))};
  ASSERT_NE(heads[0].pixels, heads[1].pixels);
  EXPECT_TRUE(shows(attention_figure({"--head", "0"}), heads[0]));
  EXPECT_TRUE(shows(attention_figure({"--head", "1"}), heads[1]));
  EXPECT_TRUE(shows(attention_figure({"--head", "mean"}), overlay_of_mean(block)));
  EXPECT_GT(attention_figure({"--head", "all"}).width, attention_figure({"--head", "1"}).width);
}

// The pixel 25, 4 of 40 × 33 is in the third patch of the first row.  The patch, of 10 × 8 pixels, has an outline.
void check_query() {
  const Tensor mean = analysis::mean_over_heads(attention_weights()[1]);
  const int64_t outline = 3 * 2 * (10 + 9);
  const image::Image first = overlay_of(mean, 1 + 2), second = overlay_of(mean, 1 + 3 * 4);
  EXPECT_TRUE(shows(attention_figure({"--query", "25,4"}), first, outline));
  EXPECT_TRUE(shows(attention_figure({"--query", "4,25"}), second, outline));
  EXPECT_FALSE(shows(attention_figure({"--query", "4,25"}), first, outline));
}

// They are in the caption.
void check_labels_of_attention() {
  EXPECT_NE(attention_figure({"--labels", names_file()}).pixels, attention_figure({}).pixels);
}

void check_rollout() {
  const auto blocks = attention_weights();
  const image::Image want = overlay_of(analysis::attention_rollout(blocks));
  EXPECT_TRUE(shows(attention_figure({"--rollout"}), want));
  EXPECT_FALSE(shows(attention_figure({}), want));
  EXPECT_NE(overlay_of(analysis::attention_rollout({blocks[1], blocks[0]})).pixels, want.pixels)
      << "their order must matter";
}

const char* const kAttributions[] = {"gradient_attention",   "grad_cam",     "gradient_input", "smooth_grad",
                                     "integrated_gradients", "leave_one_out"};

void check_method_of_attention() {
  EXPECT_EQ(attention_figure({"--method", "attention"}).pixels, attention_figure({}).pixels);
  EXPECT_EQ(attention_figure({"--method", "rollout"}).pixels, attention_figure({"--rollout"}).pixels);
  std::set<std::vector<uint8_t>> figures{attention_figure({}).pixels};
  for (const char* method : kAttributions) figures.insert(attention_figure({"--method", method}).pixels);
  EXPECT_EQ(figures.size(), std::size(kAttributions) + 1);
  const auto refused = [](const Arguments& more) {
    return refusal(Arguments{"attention", "-m", small_model(), image("a.png"), "-o", "x.png"} + more);
  };
  for (const Arguments& more : {Arguments{"--layer", "0"}, {"--head", "1"}, {"--query", "4,4"}, {"--rollout"}})
    EXPECT_TRUE(contains(refused(Arguments{"--method", "grad_cam"} + more), more[0] + ": expected ")) << more[0];
  EXPECT_TRUE(contains(refused({"--class", "1"}), "--class: expected a method that attributes"));
}

void check_class_of_attention() {
  std::set<std::vector<uint8_t>> figures;
  for (const char* of_class : {"0", "1", "2"})
    figures.insert(attention_figure({"--method", "grad_cam", "--class", of_class}).pixels);
  EXPECT_EQ(figures.size(), 3u);
  const Arguments named{"--method", "grad_cam", "--labels", names_file(), "--class"};
  EXPECT_EQ(attention_figure(named + Arguments{"1"}).pixels,
            attention_figure(named + Arguments{lines_of(content_of(names_file()))[1]}).pixels);
}

void check_baseline_of_attention() {
  for (const char* method : {"integrated_gradients", "leave_one_out"}) {
    std::set<std::vector<uint8_t>> figures;
    for (const char* baseline : {"mean", "black", "blurred"})
      figures.insert(attention_figure({"--method", method, "--baseline", baseline}).pixels);
    EXPECT_EQ(figures.size(), 3u) << method;
  }
  const ProgramResult result = run({"attention", "-m", small_model(), image("a.png"), "-o",
                                    scratch_folder() / "noted.png", "--method", "integrated_gradients"});
  EXPECT_TRUE(contains(result.err, "integrated gradients: sum ")) << result.err;
}

void check_raw() {
  const fs::path file = scratch_folder() / "raw.npy";
  run({"attention", "-m", small_model(), image("a.png"), "--raw", file});
  const NpyArray raw = read_npy(file);
  EXPECT_EQ(raw.shape, (std::vector<int64_t>{2, 2, 17, 17}));
  Values want;
  for (const Tensor& block : attention_weights(false)) {
    const Tensor dense = block.contiguous();
    want.insert(want.end(), dense.data<float>(), dense.data<float>() + dense.numel());
  }
  EXPECT_EQ(raw.f32, want);
}

// The folder that pca writes of both images.
fs::path pca_folder(const Arguments& more) {
  const fs::path folder = scratch_folder() / "overlays";
  run(Arguments{"pca", "-m", small_model(), noise_folder(), "-o", folder} + more);
  return folder;
}

NpyArray pca_scores_of(const char* name, const Arguments& more) {
  return read_npy(pca_folder(more + Arguments{"--raw"}) / name);
}

std::vector<analysis::PcaMaps> library_maps(const Request& request, const analysis::Foreground& foreground = {}) {
  std::vector<Tensor> grids;
  for (const char* name : {"a.png", "b.png"}) grids.push_back(library().run(image(name), request)[0].select(0, 0));
  return analysis::pca_maps(grids, foreground);
}

void expect_scores(const NpyArray& got, const analysis::PcaMaps& want) {
  EXPECT_EQ(got.shape, (std::vector<int64_t>{4, 4, 3}));
  ASSERT_EQ(static_cast<int64_t>(got.f32.size()), want.scores.numel());
  for (size_t i = 0; i < got.f32.size(); ++i) {
    const float value = want.scores.data<float>()[i];
    EXPECT_TRUE(std::isnan(value) ? std::isnan(got.f32[i]) : got.f32[i] == value) << i;
  }
}

const Request kGrid{.output = Output::features, .features = {.tokens = Tokens::grid}};

// Overlays have the size of their images.  Images of one name have numbers.
void check_output_of_pca() {
  const fs::path folder = pca_folder({image("a.png")});
  for (const auto& [name, source] : {std::pair{"a.png", "a.png"}, {"b.png", "b.png"}, {"a-2.png", "a.png"}}) {
    EXPECT_EQ(image::read_image(folder / name).width, image::read_image(image(source)).width) << name;
  }
  EXPECT_FALSE(fs::exists(folder / "a.npy"));
}

void check_layer_of_pca() {
  for (const int layer : {0, -1}) {
    Request request = kGrid;
    request.features.layers = {layer};
    expect_scores(pca_scores_of("b.npy", {"--layer", std::to_string(layer)}), library_maps(request)[1]);
  }
}

void check_no_norm_of_pca() {
  Request request = kGrid;
  request.features.final_norm = false;
  expect_scores(pca_scores_of("a.npy", {"--no-norm"}), library_maps(request)[0]);
  EXPECT_NE(pca_scores_of("a.npy", {"--no-norm"}).f32, pca_scores_of("a.npy", {}).f32);
}

void check_foreground() {
  using Kind = analysis::Foreground::Kind;
  expect_scores(pca_scores_of("a.npy", {"--foreground", "none"}), library_maps(kGrid)[0]);
  expect_scores(pca_scores_of("a.npy", {"--foreground", "first"}), library_maps(kGrid, {.kind = Kind::first})[0]);
  expect_scores(pca_scores_of("a.npy", {"--foreground", "0.4"}),
                library_maps(kGrid, {.kind = Kind::threshold, .threshold = 0.4})[0]);
  for (const char* wrong : {"second", "1.5", "-1"}) {
    EXPECT_EQ(run_program({"pca", "-m", small_model(), image("a.png"), "-o", scratch_folder(),
                           std::string("--foreground=") + wrong})
                  .status,
              2)
        << wrong;
  }
}

void check_invert() {
  const Values above = pca_scores_of("a.npy", {"--foreground", "0.5"}).f32;
  const Values below = pca_scores_of("a.npy", {"--foreground", "0.5", "--invert"}).f32;
  for (size_t i = 0; i < above.size(); ++i) EXPECT_NE(std::isnan(above[i]), std::isnan(below[i])) << i;
}

void check_raw_of_pca() { expect_scores(pca_scores_of("b.npy", {}), library_maps(kGrid)[1]); }

void check_opacity_of_pca() {
  const image::Image photo = image::read_image(image("a.png"));
  const image::Image clear =
      image::read_image(pca_folder({"--opacity", "0", "--crop-mode", "squash", "--crop-pct", "1"}) / "a.png");
  EXPECT_EQ(clear.pixels, photo.pixels);
  const fs::path usual = pca_folder({}) / "a.png", given = pca_folder({"--opacity", "0.75"}) / "a.png";
  EXPECT_EQ(content_of(usual), content_of(given)) << "the default";
}

// ROOT/SPLIT/CLASS/N.png with another number of images in each split.
fs::path splits_dataset() {
  const fs::path root = scratch_folder();
  int count = 0;
  for (const std::string split : {"test", "val", "train"}) {
    ++count;
    for (int i = 0; i < count; ++i)
      write_noise(root / split / (i == 0 ? "3" : "4") / (std::to_string(i) + ".png"), 32, 32,
                  static_cast<uint64_t>(10 * count + i));
  }
  return root;
}

void check_split() {
  const Arguments arguments{"eval", "--format", "json", "-m", small_model(), splits_dataset()};
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
    const Arguments arguments{"eval", "--format", "json", "-m", small_model(), root};
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

void check_predictions() {
  const fs::path root = scratch_folder(), file = root / "predictions.csv";
  for (const char* name : {"a.png", "b.png"}) fs::copy_file(image(name), root / name);
  std::ofstream(root / "list.csv") << "a.png,0\nb.png,2\n";
  run({"eval", "-m", small_model(), root / "list.csv", "--predictions", file, "--quiet"});
  const std::vector<std::string> rows = lines_of(content_of(file));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], "file,label,prediction,probability,label_probability,error");
  const Values logits = library().values(image("b.png"));
  const auto predicted = std::max_element(logits.begin(), logits.end()) - logits.begin();
  EXPECT_TRUE(contains(rows[2], "b.png,2," + std::to_string(predicted) + ",")) << rows[2];
}

void check_report() {
  const fs::path file = scratch_folder() / "report.html";
  run({"eval", "-m", small_model(), splits_dataset(), "--report", file, "--quiet"});
  EXPECT_TRUE(content_of(file).starts_with("<!doctype html>"));
}

void check_format_of_eval() {
  const Arguments arguments{"eval", "-m", small_model(), splits_dataset(), "--quiet"};
  EXPECT_EQ(json_of(arguments + Arguments{"--format", "json"})["images"], 1);
  const std::string table = run(arguments + Arguments{"--format", "table"}).out;
  EXPECT_TRUE(contains(table, "top-1")) << table;
  const std::string usual = run(arguments).out;
  EXPECT_EQ(usual.substr(0, 10), table.substr(0, 10)) << "the default";
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
  EXPECT_EQ(votes.result({"--k", "3"})["top1"], 1) << "the nearest decides";
  EXPECT_EQ(votes.result({"--k", "3", "--plain"})["top1"], 0);
  EXPECT_EQ(votes.result({"--k", "3", "--uniform"})["top1"], 0);
}

// A list of the splits' images, whose names tell no column.
fs::path unnamed_list() {
  const fs::path list = splits_dataset() / "list.csv";
  std::ofstream(list) << "photo,kind\nval/3/0.png,3\nval/4/1.png,4\n";
  return list;
}

void check_columns_of_eval() {
  const Arguments arguments{"eval", "--format", "json", "-m", small_model(), unnamed_list()};
  EXPECT_EQ(json_of(arguments + Arguments{"--columns", "file=photo,label=kind"})["images"], 2);
}

void check_columns_of_knn() {
  const fs::path list = unnamed_list();
  const Arguments arguments{"knn", "-m", small_model(), list, list, "--k", "1", "--quiet"};
  EXPECT_EQ(json_of(arguments + Arguments{"--columns", "file=photo,label=kind"})["images"], 2);
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
  return {{"classify", "--top", check_top_of_classify},
          {"classify", "--labels", check_labels_of_classify},
          {"classify", "--logits", check_logits_of_classify},
          {"classify", "--format", check_format_of_classify},
          {"embed", "-o,--output", check_output_of_embed},
          {"embed", "--dtype", check_dtype_of_embed},
          {"embed", "--tokens", check_tokens},
          {"embed", "--layer", check_layer_of_embed},
          {"embed", "--no-norm", check_no_norm},
          {"embed", "--normalize", check_normalize},
          {"attention", "-o,--output", check_output_of_attention},
          {"attention", "--layer", check_layer_of_attention},
          {"attention", "--head", check_head},
          {"attention", "--query", check_query},
          {"attention", "--labels", check_labels_of_attention},
          {"attention", "--rollout", check_rollout},
          {"attention", "--method", check_method_of_attention},
          {"attention", "--class", check_class_of_attention},
          {"attention", "--baseline", check_baseline_of_attention},
          {"attention", "--raw", check_raw},
          {"pca", "-o,--output", check_output_of_pca},
          {"pca", "--layer", check_layer_of_pca},
          {"pca", "--no-norm", check_no_norm_of_pca},
          {"pca", "--foreground", check_foreground},
          {"pca", "--invert", check_invert},
          {"pca", "--raw", check_raw_of_pca},
          {"pca", "--opacity", check_opacity_of_pca},
          {"eval", "--split", check_split},
          {"eval", "--labels", check_labels_of_eval},
          {"eval", "--logits", check_logits_of_eval},
          {"eval", "--predictions", check_predictions},
          {"eval", "--report", check_report},
          {"eval", "--format", check_format_of_eval},
          {"knn", "--k", check_k},
          {"knn", "--temperature", check_temperature},
          {"knn", "--plain,--uniform", check_plain},
          {"knn", "--train-split", check_train_split},
          {"knn", "--test-split", check_test_split},
          {"eval", "--columns", check_columns_of_eval},
          {"knn", "--columns", check_columns_of_knn}};
}

}  // namespace vitrail::testing
