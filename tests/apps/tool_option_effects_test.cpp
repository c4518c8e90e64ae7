// SPDX-License-Identifier: Apache-2.0
// Options of the program, inspect, bench, convert and train.
#include <fstream>
#include <set>

#include "tests/apps/option_effects.h"
#include "tests/support/onnx_file.h"
#include "tests/support/sam_fixture.h"
#include "tests/train/contrastive_fixture.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/npy.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/text.h"
#include "vitrail/base/zip_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/models/load.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using kernels::Precision;

const std::string kImage = "a.png";

Arguments bench_for(const std::string& seconds, const Arguments& more) {
  return Arguments{"bench", small_model(), "--batch", "1", "--seconds", seconds} + more;
}
Arguments bench(const Arguments& more) { return bench_for("0.001", more); }

void check_version() {
  const std::string version = run({"--version"}).out;
  EXPECT_TRUE(version.starts_with("vitrail ")) << version;
  EXPECT_EQ(lines_of(version).size(), 4u);
  for (const char* part : {"\ninstruction set: ", "\nlibraries: ", "libc.so", "\nlicence: Apache-2.0"})
    EXPECT_TRUE(contains(version, part)) << version;
}

void check_license() {
  const std::string notice = run({"--license"}).out;
  EXPECT_TRUE(contains(notice, "Apache License")) << notice.substr(0, 200);
  EXPECT_TRUE(contains(notice, "CLI11")) << "the libraries";
}

void check_threads() {
  for (const int threads : {1, 3}) {
    EXPECT_EQ(json_of(bench({"--threads", std::to_string(threads)}))["threads"], threads);
    EXPECT_EQ(json_of(bench({"--train", "--threads", std::to_string(threads)}))["threads"], threads);
    EXPECT_EQ(json_of(Arguments{"--threads", std::to_string(threads)} + bench({}))["threads"], threads);
  }
  EXPECT_EQ(json_of(bench({}))["threads"], available_threads());
}

// The logits of the image in the library.
std::vector<float> logits_in(Precision precision) {
  const models::OpenedModel opened = models::open_model(small_model());
  const auto transform = infer::transform_of(opened.config.preprocessing, "small model");
  const Tensor input = image::apply(image::read_image(noise_folder() / kImage), transform).unsqueeze(0);
  const infer::Session session(models::build_model(opened), {.precision = precision});
  const Tensor logits = session.logits(input);
  return {logits.data<float>(), logits.data<float>() + logits.numel()};
}

void check_precision() {
  for (const Precision precision : {Precision::fp32, Precision::half, Precision::int8}) {
    const fs::path file = scratch_folder() / "logits.npy";
    run({"classify", "-m", small_model(), noise_folder() / kImage, "--logits", file, "--precision",
         name_of(precision)});
    EXPECT_EQ(read_npy(file).f32, logits_in(precision)) << name_of(precision);
  }
  EXPECT_NE(logits_in(Precision::int8), logits_in(Precision::fp32));
  for (const std::string command : {"classify", "embed", "eval"}) {
    const std::string fp32 = observe(command, small_model());
    EXPECT_EQ(observe(command, small_model(), {"--precision", "fp32"}), fp32) << command;
    EXPECT_NE(observe(command, small_model(), {"--precision", "int8"}), fp32) << command;
  }
  for (const Arguments& arguments : {Arguments{"models"}, {"inspect", small_model()}, {"train", "x", "-o", "y"}}) {
    const ProgramResult refused = run_program(arguments + Arguments{"--precision", "half"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_TRUE(contains(refused.err, "--precision: has no effect on " + arguments[0])) << refused.err;
  }
}

void check_quiet() {
  const fs::path folder = scratch_folder();
  fs::copy(noise_folder(), folder, fs::copy_options::recursive);
  std::ofstream(folder / "other.heic") << "no image";
  const Arguments arguments{"classify", "-m", small_model(), folder};
  EXPECT_TRUE(contains(run(arguments).err, "1 file left out"));
  const ProgramResult quiet = run(arguments + Arguments{"--quiet"});
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.out, run(arguments).out);
  EXPECT_EQ(run(Arguments{"--quiet"} + arguments).err, "");
}

Arguments inspect(const Arguments& more) { return Arguments{"inspect", "-m", small_model()} + more; }

void check_tree() {
  const std::string tree = run(inspect({"--tree"})).out;
  EXPECT_TRUE(tree.starts_with("VisionTransformer(\n")) << tree;
  EXPECT_TRUE(contains(tree, "    (0-1): 2 x Block(\n")) << tree;
  EXPECT_FALSE(contains(run(inspect({})).out, "Block("));
}

void check_keys() {
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(fs::path(small_model()) / "model.safetensors");
  const std::vector<std::string> lines = lines_of(run(inspect({"--keys"})).out);
  ASSERT_EQ(lines.size(), checkpoint.tensors().size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const weights::TensorInfo& info = checkpoint.tensors()[i];
    EXPECT_TRUE(lines[i].starts_with(info.name + " ")) << lines[i];
    EXPECT_TRUE(lines[i].ends_with(info.shape.to_string())) << lines[i];
  }
}

void check_trace() {
  const auto traced = [](const std::string& image) { return run(inspect({"--trace", image})).out; };
  const std::string first = traced(noise_folder() / kImage);
  EXPECT_TRUE(contains(first, "\nlogits ")) << first;
  EXPECT_NE(first, traced(noise_folder() / "b.png"));
  EXPECT_NE(first, traced("random"));
}

void check_slice() {
  const std::string image = noise_folder() / kImage;
  const std::string out = run(inspect({"--trace", image, "--slice", "logits", "--slice", "pooled[0, :2]"})).out;
  const std::vector<std::string> lines = lines_of(out);
  ASSERT_EQ(lines.size(), 4u) << out;
  EXPECT_EQ(lines[0], "logits [1, 10]");
  EXPECT_EQ(lines[2], "pooled[0, :2] [2]");
  const std::vector<float> pooled = [&] {
    const fs::path file = scratch_folder() / "pooled.npy";
    run({"embed", "-m", small_model(), image, "-o", file});
    return read_npy(file).f32;
  }();
  double first = 0, second = 0;
  ASSERT_EQ(std::sscanf(lines[3].c_str(), "[%lf, %lf]", &first, &second), 2) << lines[3];
  EXPECT_NEAR(first, pooled[0], 1e-4);
  EXPECT_NEAR(second, pooled[1], 1e-4);
}

void check_output_of_inspect() {
  const fs::path file = scratch_folder() / "trace.npz", logits = scratch_folder() / "logits.npy";
  const std::string image = noise_folder() / kImage;
  const std::string listed = run(inspect({"--trace", image, "-o", file})).out;
  EXPECT_EQ(listed, run(inspect({"--trace", image})).out);
  run({"classify", "-m", small_model(), image, "--logits", logits});
  const std::string archive = content_of(file);
  const ZipReader reader(std::as_bytes(std::span(archive)), "trace.npz");
  const std::vector<std::string> lines = lines_of(listed);
  ASSERT_EQ(reader.entries().size(), lines.size() - 1);  // without the title
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string name = lines[i].substr(0, lines[i].find(' '));
    const auto* entry = reader.find(name + ".npy");
    ASSERT_TRUE(entry) << name;
    const NpyArray array = parse_npy(reader.read(*entry, 1 << 24), name);
    EXPECT_TRUE(contains(lines[i], " [" + join(array.shape, ", ") + "] ")) << lines[i];
    const std::vector<float> want = name == "logits" ? read_npy(logits).f32 : std::vector<float>();
    for (size_t c = 0; c < want.size(); ++c) EXPECT_NEAR(array.f32.at(c), want[c], 1e-5);
  }
  run(inspect({"--trace", image, "-o", file, "--slice", "logits"}));
  EXPECT_EQ(content_of(file).size(), archive.size());
}

void check_batch_of_inspect() {
  const std::string out = run(inspect({"--trace", "random", "--batch", "3", "--slice", "logits"})).out;
  EXPECT_TRUE(out.starts_with("logits [3, 10]\n")) << out;
  EXPECT_TRUE(run(inspect({"--trace", "random", "--slice", "logits"})).out.starts_with("logits [1, 10]\n"));
}

// The gradient of a logit by itself is 1, and a parameter's is as in the file.
void check_gradient_of_inspect() {
  const fs::path file = scratch_folder() / "gradients.npz";
  const Arguments traced{"--trace", noise_folder() / kImage, "--gradient"};
  const std::string out = run(inspect(traced + Arguments{"3", "--slice", "logits[0, 2:5]", "-o", file})).out;
  EXPECT_EQ(out, "logits[0, 2:5] [3]\n[0.0000, 1.0000, 0.0000]\n");
  const std::string archive = content_of(file);
  const ZipReader reader(std::as_bytes(std::span(archive)), "gradients.npz");
  for (const char* name : {"images", "blocks.0.attn.context", "blocks.1", "head.bias", "cls_token"})
    EXPECT_TRUE(reader.find(std::string(name) + ".npy")) << name;
  const std::vector<std::string> rows = lines_of(run(inspect(traced + Arguments{"3"})).out);
  EXPECT_EQ(rows.size(), reader.entries().size() + 1);  // with the title
  EXPECT_NE(lines_of(run(inspect(traced + Arguments{"4"})).out), rows);
  const std::string refused = refusal(inspect(traced + Arguments{"10"}));
  EXPECT_TRUE(contains(refused, "--gradient: expected the name of a class, or its index from 0 to 9, got '10'"));
}

// The rows of each table; inspect_table_test.cpp has their values.
void check_table_of_inspect() {
  for (const auto& [table, rows] : {std::pair("heads", 4u), {"norms", 2u}, {"lens", 3u}, {"ablation", 5u}}) {
    const std::string out = run(inspect({"--trace", noise_folder() / kImage, "--table", table})).out;
    EXPECT_EQ(lines_of(out).size(), rows + 1) << table << out;
    EXPECT_NE(run(inspect({"--trace", "random", "--table", table})).out, out);
  }
}

void check_class_of_inspect() {
  for (const char* table : {"lens", "ablation"}) {
    const Arguments traced{"--trace", noise_folder() / kImage, "--table", table};
    EXPECT_TRUE(contains(run(inspect(traced + Arguments{"--class", "3"})).out, "class 3, logit ")) << table;
    EXPECT_NE(run(inspect(traced + Arguments{"--class", "3"})).out,
              run(inspect(traced + Arguments{"--class", "4"})).out);
    const std::string refused = refusal(inspect(traced + Arguments{"--class", "10"}));
    EXPECT_TRUE(contains(refused, "--class: expected the name of a class, or its index from 0 to 9, got '10'"));
    const auto predicted = json_of({"classify", "-m", small_model(), noise_folder() / kImage, "--format", "json"});
    EXPECT_TRUE(run(inspect(traced)).out.starts_with("class " + predicted["predictions"][0]["index"].dump() + ","));
  }
}

void check_images_of_inspect() {
  const auto similarities = [](const fs::path& images) {
    return run(inspect({"--table", "cka", "--images", images})).out;
  };
  const fs::path first = folders_of({{"x", 16}}, 1);
  EXPECT_NE(similarities(first), similarities(folders_of({{"x", 16}}, 2)));
  EXPECT_EQ(similarities(first), similarities(first / "x"));
}

void check_neuron_of_inspect() {
  const auto patches = [](const char* neuron) {
    return run(inspect({"--table", "neurons", "--images", noise_folder(), "--neuron", neuron})).out;
  };
  EXPECT_EQ(lines_of(patches("0.3")).size(), 10u);
  EXPECT_NE(patches("0.3"), patches("1.3"));
  EXPECT_NE(patches("0.3"), patches("0.4"));
}

void check_set_of_inspect() {
  const std::string out = run({"inspect", "layer:mlp", "--set", "in_features=5"}).out;
  EXPECT_TRUE(contains(out, ", 5]")) << out;
  EXPECT_NE(run({"inspect", "layer:mlp"}).out, out);
}

void check_batch_of_bench() {
  const auto objects = json_lines(run({"bench", small_model(), "--batch", "3,2", "--seconds", "0.001"}).out);
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0]["batch"], 3);
  EXPECT_EQ(objects[1]["batch"], 2);
  EXPECT_TRUE(contains(observe("bench", small_model(), {"--batch", "3", "--threads", "1"}), "input [3, 3, 32, 32]"));
  EXPECT_EQ(json_lines(run({"bench", small_model(), "--seconds", "0.001"}).out).at(1)["batch"], 8) << "the default";
}

void check_format_of_bench() {
  const std::vector<std::string> lines =
      lines_of(run(bench({"--format", "table", "--precision", "int8,fp32", "--threads", "1"})).out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with(small_model() + ", 1 thread, ")) << lines[0];
  for (const char* title : {"batch", "precision", "median ms", "min ms", "images/s", "GFLOP/s", "peak MiB"})
    EXPECT_TRUE(contains(lines[1], title)) << lines[1];
  EXPECT_TRUE(contains(lines[2], "int8") && lines[3].ends_with("  fp32")) << lines[2] << lines[3];
  EXPECT_EQ(lines_of(run(bench({"--train", "--format", "table"})).out).size(), 3u);
  EXPECT_EQ(json_of(bench({"--format", "json"}))["batch"], 1);
  EXPECT_EQ(json_of(bench({}))["batch"], 1) << "the default without a terminal";
}

void check_precision_of_bench() {
  const auto objects = json_lines(run(bench({"--precision", "int8,fp32,half"})).out);
  ASSERT_EQ(objects.size(), 3u);
  const Precision order[] = {Precision::int8, Precision::fp32, Precision::half};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(objects[i]["precision"], name_of(order[i]));
    EXPECT_EQ(objects[i]["arithmetic"], kernels::arithmetic_of(order[i]));
  }
  EXPECT_EQ(json_of(bench({}))["precision"], "fp32");
}

// At least five runs; in half a second there are hundreds of this model.
void check_seconds() {
  EXPECT_EQ(json_of(bench_for("1e-9", {}))["runs"], 5);
  EXPECT_EQ(json_of(bench_for("1e-9", {"--train"}))["runs"], 5);
  EXPECT_GT(json_of(bench_for("0.5", {}))["runs"], 5);
}

void check_steps_of_profile(const std::string& cpu) {
  const auto environment =
      cpu.empty() ? std::map<std::string, std::string>{} : std::map<std::string, std::string>{{"VITRAIL_CPU", cpu}};
  const auto profiles =
      json_lines(run(bench({"--profile", "--format", "json", "--precision", "fp32,int8"}), environment).out);
  ASSERT_EQ(profiles.size(), 2u);
  for (const auto& profile : profiles) {
    for (const char* key : {"model", "batch", "images_per_pass", "arithmetic", "threads", "total_ms", "share"})
      EXPECT_TRUE(profile.contains(key)) << key;
    EXPECT_GT(profile["bounds"]["gemm_gflop_per_s"].size(), 0u);
    EXPECT_GT(profile["bounds"]["cache_gb_per_s"], 0);
    EXPECT_GT(profile["bounds"]["memory_gb_per_s"], 0);
    const std::string isa = profile["isa"];
    if (!cpu.empty()) {
      EXPECT_EQ(isa, cpu);
    }
    for (const auto& step : profile["steps"]) {
      for (const char* key : {"step", "ms", "percent", "gflop_per_s", "gb_per_s"})
        EXPECT_TRUE(step.contains(key)) << key;
      EXPECT_NE(step["kernel"], "") << step;
      EXPECT_TRUE(step["isa"] == isa || step["isa"] == "scalar" || step["isa"] == "oneDNN") << step;
      EXPECT_TRUE(step["bound"] == "compute" || step["bound"] == "cache" || step["bound"] == "memory") << step;
      EXPECT_GT(step["share"], 0) << step;
    }
  }
  const auto kernels_of = [](const nlohmann::json& profile) {
    std::set<std::string> names;
    for (const auto& step : profile["steps"]) names.insert(step["kernel"]);
    return names;
  };
  EXPECT_TRUE(kernels_of(profiles[0]).contains("fp32 GEMM"));
  EXPECT_TRUE(kernels_of(profiles[0]).contains("attention fp32"));
  EXPECT_TRUE(kernels_of(profiles[1]).contains("int8 GEMM"));
}

void check_profile() {
  check_steps_of_profile("");
  check_steps_of_profile("scalar");
  const std::string profile = run(bench({"--profile"})).out;
  EXPECT_TRUE(contains(profile, "patchify 8×8 input [1, 3, 32, 32]")) << profile;
  EXPECT_TRUE(profile.ends_with(" total\n")) << profile;
  for (const char* part : {"\nbounds: fp32 GEMM ", " copy in cache ", ", in memory ", " share % bound ", " kernel ",
                           " isa ", "  layer norm ", "  fp32 GEMM "})
    EXPECT_TRUE(contains(profile, part)) << profile;
  EXPECT_FALSE(contains(run(bench({})).out, "bound")) << "measured for --profile only";
  const std::string training = run(bench({"--profile", "--train"})).out;
  EXPECT_TRUE(contains(training, "  backward of linear\n")) << training;
}

void check_train_of_bench() {
  const auto result = json_of(bench({"--train"}));
  EXPECT_EQ(result["task"], "train");
  EXPECT_EQ(result["train"], true);
  EXPECT_EQ(result["activation_checkpointing"], false);
  EXPECT_FALSE(json_of(bench({})).contains("train"));
  for (const char* half : {"half", "bf16"}) {  // two names of one precision
    const auto trained = json_of(bench({"--train", "--precision", half}));
    EXPECT_EQ(trained["precision"], half);
    EXPECT_TRUE(contains(trained["arithmetic"], "bf16")) << trained;
  }
  const ProgramResult refused = run_program(bench({"--train", "--precision", "int8"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "training takes fp32 or half")) << refused.err;
  const std::string headless = fixture("models/timm_num_classes_0").string();
  for (const Arguments& more : {Arguments{}, {"--profile"}}) {
    const ProgramResult without_head =
        run_program(Arguments{"bench", headless, "--train", "--seconds", "0.001"} + more);
    EXPECT_EQ(without_head.status, 1);
    EXPECT_TRUE(contains(without_head.err, "a model with a head, for a training step, got one without"))
        << without_head.err;
  }
}

void check_checkpointing() {
  EXPECT_EQ(json_of(bench({"--train", "--checkpointing"}))["activation_checkpointing"], true);
  EXPECT_TRUE(contains(run(bench({"--train", "--checkpointing", "--profile"})).out, "backward of checkpoint"));
  EXPECT_FALSE(contains(run(bench({"--train", "--profile"})).out, "backward of checkpoint"));
}

void convert(const fs::path& folder, const Arguments& more) {
  run(Arguments{"convert", small_model(), "--output", folder} + more);
}

void check_output_of_convert() {
  const fs::path folder = scratch_folder() / "new";
  convert(folder, {});
  EXPECT_EQ(observe("classify", folder), observe("classify", small_model()));
}

void check_dtype() {
  const std::pair<const char*, DType> types[] = {
      {"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}, {"int8", DType::i8}};
  for (const auto& [name, dtype] : types) {
    const fs::path folder = scratch_folder();
    convert(folder, {"--dtype", name});
    const weights::Checkpoint checkpoint = weights::Checkpoint::open(folder / "model.safetensors");
    EXPECT_EQ(checkpoint.info("blocks.1.mlp.fc1.weight").dtype, dtype) << name;
    EXPECT_EQ(checkpoint.info("head.weight").dtype, dtype == DType::i8 ? DType::f32 : dtype) << name;
  }
}

// The number of layers that an int8 conversion leaves in 16 bits.
size_t excluded_layers(const Arguments& more) {
  const fs::path folder = scratch_folder();
  convert(folder, Arguments{"--dtype", "int8"} + more);
  return nlohmann::json::parse(content_of(folder / "config.json"))["int8"]["excluded"].size();
}

void check_calibrate() {
  const Arguments images{"--calibrate", noise_folder(), "--tolerance", "1"};
  for (const bool calibrated : {false, true}) {
    const fs::path folder = scratch_folder();
    convert(folder, Arguments{"--dtype", "int8"} + (calibrated ? images : Arguments{}));
    const weights::Checkpoint checkpoint = weights::Checkpoint::open(folder / "model.safetensors");
    EXPECT_EQ(checkpoint.has("blocks.0.mlp.fc1.weight_correction"), calibrated);
  }
}

void check_tolerance() {
  EXPECT_EQ(excluded_layers({"--calibrate", noise_folder(), "--tolerance", "1e-9"}), 8u);
  EXPECT_EQ(excluded_layers({"--calibrate", noise_folder(), "--tolerance", "1"}), 0u);
}

// The bytes of the ONNX file.
std::string onnx_file(const Arguments& more) {
  const fs::path file = scratch_folder() / "model.onnx";
  convert(file, more);
  return content_of(file);
}

// Without an ONNX file the option is refused.
void check_onnx_option(const Arguments& option) {
  EXPECT_NE(onnx_file(option), onnx_file({}));
  const ProgramResult refused =
      run_program(Arguments{"convert", small_model(), "-o", scratch_folder() / "folder"} + option);
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, option[0] + ": requires an output that ends in .onnx")) << refused.err;
}

void check_opset() {
  check_onnx_option({"--opset", "18"});
  EXPECT_EQ(onnx_file({"--opset", "17"}), onnx_file({}));
}

void check_input_of_onnx() {
  check_onnx_option({"--input", "uint8"});
  EXPECT_TRUE(contains(onnx_file({"--input", "uint8"}), "pixel_factor"));
  EXPECT_EQ(onnx_file({"--input", "float"}), onnx_file({}));
}

void check_dynamic_batch() {
  check_onnx_option({"--dynamic-batch"});
  EXPECT_TRUE(contains(onnx_file({"--dynamic-batch"}),
                       "\x12\x05"
                       "batch"));
  const ProgramResult refused =
      run_program({"convert", small_model(), "-o", scratch_folder() / "model.onnx", "--dtype", "fp16"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "--dtype: an ONNX file is fp32")) << refused.err;
}

void check_activations() {
  const Arguments calibrated{"--dtype", "int8", "--calibrate", noise_folder()};
  const auto graph = [&](const char* dtype) {
    const fs::path file = scratch_folder() / "model.onnx";
    convert(file, calibrated + Arguments{"--activations", dtype});
    return read_onnx(file);
  };
  for (const auto& [name, type] : {std::pair("int8", 3), std::pair("uint8", 2)}) {
    const OnnxFile file = graph(name);
    EXPECT_GT(file.count("QuantizeLinear"), 0) << name;
    for (const OnnxFile::Node& node : file.nodes) {
      if (node.op != "QuantizeLinear") continue;
      EXPECT_EQ(file.constants.at(node.inputs[2]).type, type) << name;
    }
  }
  EXPECT_EQ(onnx_file({"--activations", "fp32"}), onnx_file({}));
  const ProgramResult refused = run_program(
      Arguments{"convert", small_model(), "-o", scratch_folder() / "folder", "--activations", "int8"} + calibrated);
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "--activations: requires an output that ends in .onnx")) << refused.err;
}

void check_single_mask() {
  const fs::path sam = sam_fixture("padded_windows").model;
  const auto decoder = [&](const Arguments& more) {
    const fs::path file = scratch_folder() / "sam.onnx";
    const ProgramResult result = run_program(Arguments{"convert", sam, "-o", file} + more);
    EXPECT_EQ(result.status, 0) << result.err;
    return read_onnx(fs::path(file).replace_extension(".decoder.onnx"));
  };
  EXPECT_EQ(decoder({}).outputs[0].shape[1], "4");
  EXPECT_EQ(decoder({"--single-mask"}).outputs[0].shape[1], "1");
  const ProgramResult refused =
      run_program({"convert", small_model(), "-o", scratch_folder() / "model.onnx", "--single-mask"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "--single-mask: is for a Segment Anything model")) << refused.err;
}

// A run of one epoch on a few images.
class SmallRun {
 public:
  SmallRun() { train::write_file(recipe_, train::tiny_recipe(train::make_images(8, 2))); }
  Arguments arguments(const Arguments& more) const {
    return Arguments{"train", recipe_, "-o",       folder_, "--threads",
                     "1",     "--set", "epochs=1", "--set", "data.holdout=6"} +
           more;
  }
  const fs::path& folder() const { return folder_; }
  train::CheckpointState last() const { return train::load_checkpoint(folder_ / "checkpoints/last.safetensors"); }

 private:
  fs::path recipe_ = scratch_folder() / "recipe.json", folder_ = scratch_folder() / "run";
};

void check_output_of_train() {
  const SmallRun small;
  EXPECT_EQ(json_of(small.arguments({}))["run"], small.folder().string());
  for (const char* file : {"recipe.json", "metrics.csv", "model/model.safetensors", "checkpoints/last.safetensors"})
    EXPECT_TRUE(fs::exists(small.folder() / file)) << file;
}

void check_set() {
  const SmallRun small;
  const auto result = json_of(small.arguments({"--set", "epochs=2", "--set", "optimizer.lr=0.25"}));
  EXPECT_EQ(result["epochs"], 2) << "the last one counts";
  const auto recipe = nlohmann::json::parse(content_of(small.folder() / "recipe.json"));
  EXPECT_EQ(recipe["optimizer"]["lr"], 0.25);
}

void check_resume() {
  const SmallRun small;
  run(small.arguments({}));
  const int64_t step = small.last().position.step;
  const ProgramResult again = run_program(small.arguments({}));
  EXPECT_EQ(again.status, 1);
  EXPECT_TRUE(contains(again.err, "or --resume to continue its run")) << again.err;
  EXPECT_EQ(json_of(small.arguments({"--resume"}))["steps"], step);
  const SmallRun fresh;
  EXPECT_EQ(json_of(fresh.arguments({"--resume"}))["steps"], step) << "starts a run that is not there";
}

void check_allow_changes() {
  const SmallRun small;
  run(small.arguments({}));
  const int64_t step = small.last().position.step;
  const Arguments changed = small.arguments({"--resume", "--set", "epochs=2"});
  const ProgramResult refused = run_program(changed);
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "epochs")) << refused.err;
  EXPECT_EQ(small.last().position.step, step);
  EXPECT_EQ(json_of(changed + Arguments{"--allow-changes"})["steps"], 2 * step);
}

// A cache with a model of one file, whose content is not what its name says, and a file of no revision.
std::map<std::string, std::string> environment_with_cache(const fs::path& cache) {
  const fs::path model = cache / "models--org--name";
  const std::string commit(40, 'c'), blob(40, 'a'), unused(40, 'b');
  for (const char* folder : {"refs", "blobs", "snapshots"}) fs::create_directories(model / folder);
  fs::create_directory(model / "snapshots" / commit);
  std::ofstream(model / "refs/main") << commit;
  std::ofstream(model / "blobs" / blob) << "damaged";
  std::ofstream(model / "blobs" / unused) << "unused";
  fs::create_symlink("../../blobs/" + blob, model / "snapshots" / commit / "config.json");
  return {{"HF_HUB_CACHE", cache.string()}};
}

size_t blobs_in(const fs::path& cache) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(cache / "models--org--name/blobs"), {}));
}

void check_remove_of_cache() {
  const fs::path cache = scratch_folder();
  const auto environment = environment_with_cache(cache);
  EXPECT_EQ(run_program({"cache", "verify"}, "", environment).status, 1);
  EXPECT_EQ(blobs_in(cache), 2u);
  EXPECT_EQ(run_program({"cache", "verify", "--remove"}, "", environment).status, 1);
  EXPECT_EQ(blobs_in(cache), 0u);
  EXPECT_EQ(run_program({"cache", "ls", "--remove"}, "", environment).status, 2);
}

void check_dry_run_of_cache() {
  const fs::path cache = scratch_folder();
  const auto environment = environment_with_cache(cache);
  EXPECT_EQ(run({"cache", "prune", "--dry-run"}, environment).out, "6 B would become free\n");
  EXPECT_EQ(blobs_in(cache), 2u);
  EXPECT_EQ(run({"cache", "prune"}, environment).out, "6 B are free now\n");
  EXPECT_EQ(blobs_in(cache), 1u);
  EXPECT_EQ(run_program({"cache", "verify", "--dry-run"}, "", environment).status, 2);
}

nlohmann::json recipe_of(const fs::path& run) { return nlohmann::json::parse(content_of(run / "recipe.json")); }

void check_model_of_train() {
  const SmallRun small;
  run(small.arguments({}));
  EXPECT_NE(recipe_of(small.folder())["model"].value("init", ""), small_model());
  const fs::path images = train::make_images(8, 2), folder = scratch_folder() / "run";
  run({"train", images, "-o", folder, "-m", small_model(), "--epochs", "1", "--threads", "1"});
  EXPECT_EQ(recipe_of(folder)["model"]["init"], small_model());
}

void check_data() {
  const SmallRun small;
  const fs::path images = train::make_images(9, 2);
  run(small.arguments({"--data", images}));
  EXPECT_EQ(recipe_of(small.folder())["data"]["train"], images.string());
}

void check_columns_of_train() {
  const SmallRun small;
  const fs::path images = train::make_images(9, 2), list = images / "list.csv";
  std::ofstream stream(list);
  stream << "photo,kind\n";
  for (const auto& entry : fs::recursive_directory_iterator(images / "train")) {
    if (entry.is_regular_file())
      stream << entry.path().string() << "," << entry.path().parent_path().filename().string() << "\n";
  }
  stream.close();
  run(small.arguments({"--data", list, "--columns", "file=photo,label=kind"}));
  EXPECT_EQ(recipe_of(small.folder())["data"]["columns"], "file=photo,label=kind");
}

// The digest of the weights after an epoch on all images of a dataset; those of one class are `file`.
std::string weights_after(const fs::path& file, const Arguments& more) {
  const SmallRun small;
  const fs::path images = train::make_images(8, 2);
  for (const auto& entry : fs::directory_iterator(images / "train/red"))
    fs::copy_file(file, entry.path(), fs::copy_options::overwrite_existing);
  run(small.arguments(Arguments{"--data", images, "--set", "data.val=null", "--set", "data.holdout=0"} + more));
  const std::string weights = content_of(small.folder() / "model/model.safetensors");
  return sha256(std::as_bytes(std::span(weights)));
}

void check_exif_of_train() {
  const fs::path turned = fixture("image/decode/exif_6.png"), upright = scratch_folder() / "upright.png";
  image::write_png(upright, image::read_image(turned, {.apply_exif = true}));
  const std::string stored = weights_after(turned, {}), applied = weights_after(turned, {"--exif"});
  EXPECT_EQ(applied, weights_after(upright, {}));
  EXPECT_NE(applied, stored);
  EXPECT_EQ(stored, weights_after(turned, {"--exif", "--set", "data.exif=false"})) << "--set has the last word";
}

// A run on a folder of images: what its options choose.
nlohmann::json chosen_recipe(const Arguments& more) {
  const fs::path folder = scratch_folder() / "run";
  run(Arguments{"train", train::make_images(8, 2), "-o", folder, "-m", small_model(), "--threads", "1"} + more);
  return recipe_of(folder);
}

void check_preset_of_train() {
  EXPECT_EQ(chosen_recipe({"--preset", "probe"})["objective"], "probe");
  EXPECT_NE(chosen_recipe({"--preset", "finetune", "--epochs", "1"}).value("objective", ""), "probe");
  EXPECT_EQ(chosen_recipe({"--preset", "probe", "--exif"})["data"]["exif"], true);
}

// COCO's masks are label maps or boxes.
void check_objective_of_train() {
  const fs::path set = scratch_folder();
  fs::create_directories(set / "annotations");
  fs::create_directories(set / "train");
  nlohmann::json coco{{"images", nlohmann::json::array()},
                      {"annotations", nlohmann::json::array()},
                      {"categories", {{{"id", 1}, {"name", "cat"}}}}};
  for (int i = 1; i <= 4; ++i) {
    const std::string name = std::to_string(i) + ".png";
    image::write_png(set / "train" / name, image::make_image(32, 32, 3));
    coco["images"].push_back({{"id", i}, {"file_name", name}, {"width", 32}, {"height", 32}});
    coco["annotations"].push_back({{"id", i},
                                   {"image_id", i},
                                   {"category_id", 1},
                                   {"bbox", {4, 4, 16, 16}},
                                   {"area", 256},
                                   {"iscrowd", 0},
                                   {"segmentation", {{4, 4, 20, 4, 20, 20, 4, 20}}}});
  }
  std::ofstream(set / "annotations/instances_train.json") << coco;
  const auto objective_with = [&](const Arguments& more) {
    const fs::path folder = scratch_folder() / "run";
    run(Arguments{"train", set, "-o", folder, "-m", small_model(), "--threads", "1", "--epochs", "1"} + more);
    return recipe_of(folder)["objective"].get<std::string>();
  };
  EXPECT_EQ(objective_with({}), "semantic");
  EXPECT_EQ(objective_with({"--objective", "detect", "--set", "detect.size=64", "--set", "detect.queries=6"}),
            "detect");
}

void check_force_of_train() {
  const fs::path pairs = train::make_pairs(24), folder = scratch_folder() / "run";
  const Arguments arguments{"train",    pairs, "-o",        folder, "-m",    train::small_clip(),
                            "--epochs", "1",   "--threads", "1",    "--set", "optimizer.lr=0.001"};
  const ProgramResult refused = run_program(arguments);
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "--force")) << refused.err;
  const ProgramResult forced = run(arguments + Arguments{"--force"});
  EXPECT_TRUE(contains(forced.err, "before training → saved model")) << forced.err;
}

void check_epochs() {
  for (const int epochs : {1, 2}) EXPECT_EQ(chosen_recipe({"--epochs", std::to_string(epochs)})["epochs"], epochs);
}

void check_folds() {
  const fs::path folder = scratch_folder() / "run", images = train::make_images(8, 2);
  const auto json =
      json_of({"train", images, "-o", folder, "-m", small_model(), "--threads", "1", "--epochs", "1", "--folds", "2"});
  EXPECT_EQ(json["folds"], 2);
  EXPECT_TRUE(json["held_out_top1"].is_null());
  const auto results = nlohmann::json::parse(content_of(folder / "cross_validation.json"));
  EXPECT_EQ(json["cross_validated_top1"], results["mean"]);
  EXPECT_EQ(results["images"], 24);
  EXPECT_EQ(recipe_of(folder / "folds/2")["data"]["fold"], 2);
}

// Less time than an epoch takes is one epoch; without the option there are more.
void check_time() { EXPECT_EQ(chosen_recipe({"--time", "0.000001s"})["epochs"], 1); }

}  // namespace

OptionEffects tool_option_effects() {
  return {{"", "--version", check_version},
          {"", "--license", check_license},
          {"", "--threads", check_threads},
          {"", "--precision", check_precision},
          {"", "--quiet", check_quiet},
          {"inspect", "--tree", check_tree},
          {"inspect", "--keys", check_keys},
          {"inspect", "--trace", check_trace},
          {"inspect", "--slice", check_slice},
          {"inspect", "-o,--output", check_output_of_inspect},
          {"inspect", "--batch", check_batch_of_inspect},
          {"inspect", "--gradient", check_gradient_of_inspect},
          {"inspect", "--table", check_table_of_inspect},
          {"inspect", "--class", check_class_of_inspect},
          {"inspect", "--images", check_images_of_inspect},
          {"inspect", "--neuron", check_neuron_of_inspect},
          {"inspect", "--set", check_set_of_inspect},
          {"bench", "--batch", check_batch_of_bench},
          {"bench", "--precision", check_precision_of_bench},
          {"bench", "--format", check_format_of_bench},
          {"bench", "--seconds", check_seconds},
          {"bench", "--profile", check_profile},
          {"bench", "--train", check_train_of_bench},
          {"bench", "--checkpointing", check_checkpointing},
          {"cache", "--remove", check_remove_of_cache},
          {"cache", "--dry-run", check_dry_run_of_cache},
          {"convert", "-o,--output", check_output_of_convert},
          {"convert", "--dtype", check_dtype},
          {"convert", "--calibrate", check_calibrate},
          {"convert", "--tolerance", check_tolerance},
          {"convert", "--opset", check_opset},
          {"convert", "--input", check_input_of_onnx},
          {"convert", "--dynamic-batch", check_dynamic_batch},
          {"convert", "--activations", check_activations},
          {"convert", "--single-mask", check_single_mask},
          {"train", "-o,--output", check_output_of_train},
          {"train", "-m,--model", check_model_of_train},
          {"train", "--data", check_data},
          {"train", "--columns", check_columns_of_train},
          {"train", "--preset", check_preset_of_train},
          {"train", "--objective", check_objective_of_train},
          {"train", "--epochs", check_epochs},
          {"train", "--folds", check_folds},
          {"train", "--time", check_time},
          {"train", "--exif", check_exif_of_train},
          {"train", "--set", check_set},
          {"train", "--force", check_force_of_train},
          {"train", "--resume", check_resume},
          {"train", "--allow-changes", check_allow_changes}};
}

}  // namespace vitrail::testing
