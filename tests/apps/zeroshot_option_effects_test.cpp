// SPDX-License-Identifier: Apache-2.0
// Options of zeroshot, and those of embed and eval for texts, compared with the library's results.
#include <array>
#include <set>

#include "tests/apps/option_effects.h"
#include "vitrail/base/npy.h"
#include "vitrail/pipeline/dual_model.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<float>;

fs::path noise_image() { return noise_folder() / "a.png"; }

// A file with these lines.
std::string file_of(const std::string& lines) {
  const fs::path file = scratch_folder() / "lines.txt";
  std::ofstream(file) << lines;
  return file;
}

Values values_of(const Tensor& tensor) { return {tensor.data<float>(), tensor.data<float>() + tensor.numel()}; }

// The probabilities of the labels in their order.
Values zeroshot(const Arguments& more, const std::string& model = dual_model()) {
  Values values(3);
  const Arguments arguments{"zeroshot", "-m", model, noise_image(), "--labels", "cat,dog,bone", "--format", "json"};
  const nlohmann::json object = json_of(arguments + more);
  for (const auto& prediction : object["predictions"]) {
    values.at(prediction["index"].get<size_t>()) = prediction["probability"].get<float>();
  }
  return values;
}

struct Expected {
  std::vector<std::string> templates{"{}"};
  ModelOptions options{};
  image::DecodeOptions decode{};
};

Values library_probabilities(const Expected& expected) {
  const DualModel model(dual_model(), expected.options);
  const Tensor labels = model.embed_labels({"cat", "dog", "bone"}, expected.templates);
  return values_of(model.probabilities(model.logits(model.embed_image(model.images().read(noise_image())), labels)));
}

// The option gives the library's result, which is another one than without it.
void check_as(const Arguments& option, const Expected& expected) {
  const Values got = zeroshot(option), want = library_probabilities(expected);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  EXPECT_NE(got, zeroshot({}));
}

Expected with_preprocessing(const models::PreprocessingOverrides& overrides) {
  Expected expected;
  expected.options.load.preprocessing = overrides;
  return expected;
}

void check_model_of_zeroshot() {
  const Values all = zeroshot({});
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], library_probabilities({})[i], 1e-6);
  EXPECT_NE(zeroshot({}, fixture("models/hf_clip").string()), all);
}

// A copy without open_clip_config.json, with the configuration elsewhere.
void check_config_of_zeroshot() {
  const fs::path folder = scratch_folder(), config = scratch_folder() / "config.json";
  fs::copy(dual_model(), folder, fs::copy_options::recursive);
  fs::rename(folder / "open_clip_config.json", config);
  EXPECT_EQ(zeroshot({"--config", config}, folder), zeroshot({}));
  EXPECT_NE(run_program({"zeroshot", "-m", folder, noise_image(), "--labels", "cat"}).status, 0);
}

void check_key_map_of_zeroshot() {
  EXPECT_EQ(zeroshot({"--key-map", "open_clip"}), zeroshot({}));
  EXPECT_NE(run_program({"zeroshot", "-m", dual_model(), noise_image(), "--labels", "cat", "--key-map", "timm"}).status,
            0);
}

void check_adapter_of_zeroshot() {
  const auto adapter_with = [](const Tensor& b, int64_t width) {
    const fs::path folder = scratch_folder() / "adapter";
    weights::write_lora_adapter(
        folder, {.parts = {{"blocks.0.attn.qkv.weight", {Tensor::randn({1, width}, 1), b}}}, .tensors = {}, .path = {}},
        "base");
    return folder;
  };
  const int64_t width = models::open_model(models::ModelFiles(dual_model())).config.vit.embed_dim;
  const Tensor drawn = Tensor::randn({3 * width, 1}, 2);
  EXPECT_EQ(zeroshot({"--adapter", adapter_with(Tensor::zeros(drawn.shape()), width)}), zeroshot({}));
  EXPECT_NE(zeroshot({"--adapter", adapter_with(drawn, width)}), zeroshot({}));
}

void check_image_size_of_zeroshot() {
  Expected expected;
  expected.options.load.image_size = {24, 20};
  check_as({"--image-size", "24,20"}, expected);
}

void check_exif_of_zeroshot() {
  EXPECT_EQ(zeroshot({"--exif"}), zeroshot({})) << "an image without orientation";
  const fs::path photo = fixture("image/decode/exif_6.png");
  const auto of = [&](const Arguments& more) {
    return run(Arguments{"zeroshot", "-m", dual_model(), photo, "--labels", "cat,dog", "--format", "json"} + more).out;
  };
  EXPECT_NE(of({"--exif"}), of({}));
}

// The batch changes the memory and the order of work, not the results.
void check_batch_of_zeroshot() {
  const auto of = [](const char* size) {
    return run({"zeroshot", "-m", dual_model(), noise_folder(), "--labels", "cat,dog", "--format", "csv", "--batch",
                size})
        .out;
  };
  EXPECT_EQ(of("1"), of("2"));
  EXPECT_NE(run_program({"zeroshot", "-m", dual_model(), noise_image(), "--labels", "cat", "--batch", "0"}).status, 0);
}

void check_labels() {
  const std::string file = file_of("cat\ndog\nbone, of a dog\n");
  const auto objects = json_of({"zeroshot", "-m", dual_model(), noise_image(), "--labels", file, "--format", "json"});
  std::set<std::string> labels;
  for (const auto& prediction : objects["predictions"]) labels.insert(prediction["label"]);
  EXPECT_EQ(labels, (std::set<std::string>{"cat", "dog", "bone, of a dog"}));
}

void check_template() {
  check_as({"--template", "the {}"}, {.templates = {"the {}"}});
  check_as({"--template", "the {}", "--template", "{} in the snow"}, {.templates = {"the {}", "{} in the snow"}});
}

void check_templates() {
  check_as({"--templates", file_of("the {}\n{} in the snow\n")}, {.templates = {"the {}", "{} in the snow"}});
  check_as({"--template", "the {}", "--templates", file_of("{} in the snow\n")},
           {.templates = {"the {}", "{} in the snow"}});
}

// The same tokens with other ids.
std::string other_tokenizer() {
  const fs::path folder = scratch_folder();
  nlohmann::json vocab;
  std::ifstream(fs::path(dual_model()) / "vocab.json") >> vocab;
  const int64_t words = static_cast<int64_t>(vocab.size()) - 2;  // all but the special tokens
  for (auto& id : vocab) id = id < words ? (id.get<int64_t>() + 7) % words : id.get<int64_t>();
  std::ofstream(folder / "vocab.json") << vocab;
  fs::copy_file(fs::path(dual_model()) / "merges.txt", folder / "merges.txt");
  return folder;
}

void check_tokenizer_of_zeroshot() {
  EXPECT_NE(zeroshot({"--tokenizer", other_tokenizer()}), zeroshot({}));
  EXPECT_EQ(zeroshot({"--tokenizer", fs::path(dual_model()) / "vocab.json"}), zeroshot({}));
}

void check_top_of_zeroshot() {
  const Arguments arguments{"zeroshot", "-m",           dual_model(), noise_image(),
                            "--labels", "cat,dog,bone", "--format",   "json"};
  const auto all = json_of(arguments)["predictions"], top = json_of(arguments + Arguments{"--top", "2"})["predictions"];
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0], all[0]);
  EXPECT_EQ(top[1], all[1]);
}

void check_format_of_zeroshot() {
  const Arguments arguments{"zeroshot", "-m", dual_model(), noise_image(), "--labels", "cat,dog"};
  EXPECT_TRUE(contains(run(arguments).out, " %  cat\n"));
  EXPECT_EQ(run(arguments).out, run(arguments + Arguments{"--format", "text"}).out);
  EXPECT_TRUE(json_of(arguments + Arguments{"--format", "json"}).contains("predictions"));
  EXPECT_TRUE(run(arguments + Arguments{"--format", "csv"}).out.starts_with("path,rank,index,label,probability"));
}

Values embedded_texts(const Arguments& more) {
  const fs::path output = scratch_folder() / "texts.npy";
  run(Arguments{"embed", "-m", dual_model(), "-o", output} + more);
  return read_npy(output).f32;
}

void check_text_of_embed() {
  const DualModel model(dual_model());
  EXPECT_EQ(embedded_texts({"--text", "the cat"}), values_of(model.embed_texts({"the cat"}, false)));
  EXPECT_EQ(embedded_texts({"--text", file_of("the cat\na dog\n")}),
            values_of(model.embed_texts({"the cat", "a dog"}, false)));
}

void check_tokenizer_of_embed() {
  EXPECT_NE(embedded_texts({"--text", "the cat", "--tokenizer", other_tokenizer()}),
            embedded_texts({"--text", "the cat"}));
}

// Images of noise in the class folders cat, dog and bone.
fs::path named_dataset() {
  const fs::path root = scratch_folder();
  for (uint64_t i = 0; i < 6; ++i) {
    write_noise(root / std::array{"cat", "dog", "bone"}.at(i % 3) / (std::to_string(i) + ".png"), 40, 33, i);
  }
  return root;
}

std::string evaluated(const Arguments& more) {
  static const fs::path dataset = named_dataset();
  const fs::path logits = scratch_folder() / "logits.npy";
  run(Arguments{"eval", "-m", dual_model(), dataset, "--quiet", "--zeroshot", "--logits", logits} + more);
  return content_of(logits);
}

void check_zeroshot_of_eval() {
  EXPECT_FALSE(evaluated({}).empty());
  const ProgramResult without = run_program({"eval", "-m", dual_model(), named_dataset()});
  EXPECT_TRUE(contains(without.err, "a model with a classifier")) << without.err;
}

void check_template_of_eval() {
  EXPECT_NE(evaluated({"--template", "the {}"}), evaluated({}));
  EXPECT_EQ(evaluated({"--template", "{}"}), evaluated({}));
}

void check_templates_of_eval() {
  EXPECT_EQ(evaluated({"--templates", file_of("the {}\n")}), evaluated({"--template", "the {}"}));
}

void check_tokenizer_of_eval() { EXPECT_NE(evaluated({"--tokenizer", other_tokenizer()}), evaluated({})); }

}  // namespace

OptionEffects zeroshot_option_effects() {
  const auto as = [](const Arguments& option, const models::PreprocessingOverrides& overrides) {
    return [=] { check_as(option, with_preprocessing(overrides)); };
  };
  return {{"zeroshot", "-m,--model", check_model_of_zeroshot},
          {"zeroshot", "--config", check_config_of_zeroshot},
          {"zeroshot", "--key-map", check_key_map_of_zeroshot},
          {"zeroshot", "--adapter", check_adapter_of_zeroshot},
          {"zeroshot", "--image-size", check_image_size_of_zeroshot},
          {"zeroshot", "--preset", as({"--preset", "inception"}, {.preset = "inception"})},
          {"zeroshot", "--mean", as({"--mean", "0.1,0.9,0.3"}, {.mean = {{0.1, 0.9, 0.3}}})},
          {"zeroshot", "--std", as({"--std", "0.7,0.1,0.4"}, {.std = {{0.7, 0.1, 0.4}}})},
          {"zeroshot", "--interpolation", as({"--interpolation", "nearest"}, {.interpolation = "nearest"})},
          {"zeroshot", "--crop-pct", as({"--crop-pct", "0.5"}, {.crop_pct = 0.5})},
          {"zeroshot", "--crop-mode", as({"--crop-mode", "squash"}, {.crop_mode = "squash"})},
          {"zeroshot", "--exif", check_exif_of_zeroshot},
          {"zeroshot", "--batch", check_batch_of_zeroshot},
          {"zeroshot", "--labels", check_labels},
          {"zeroshot", "--template", check_template},
          {"zeroshot", "--templates", check_templates},
          {"zeroshot", "--tokenizer", check_tokenizer_of_zeroshot},
          {"zeroshot", "--top", check_top_of_zeroshot},
          {"zeroshot", "--format", check_format_of_zeroshot},
          {"embed", "--text", check_text_of_embed},
          {"embed", "--tokenizer", check_tokenizer_of_embed},
          {"eval", "--zeroshot", check_zeroshot_of_eval},
          {"eval", "--template", check_template_of_eval},
          {"eval", "--templates", check_templates_of_eval},
          {"eval", "--tokenizer", check_tokenizer_of_eval}};
}

}  // namespace vitrail::testing
