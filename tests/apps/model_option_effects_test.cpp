// SPDX-License-Identifier: Apache-2.0
// Options that several commands share: those of the model and its preprocessing, --tome, --exif and --batch.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <set>

#include "tests/apps/option_effects.h"
#include "vitrail/base/random.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/lora_adapter.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {

namespace fs = std::filesystem;

void write_noise(const fs::path& file, int64_t width, int64_t height, uint64_t seed) {
  image::Image noise = image::make_image(width, height, 3);
  RandomStream random(random_key("noise", seed));
  for (uint8_t& value : noise.pixels) value = static_cast<uint8_t>(random.bits() >> 24);
  fs::create_directories(file.parent_path());
  image::write_png(file, noise);
}

fs::path noise_dataset(int per_class, uint64_t seed) {
  const fs::path root = scratch_folder();
  for (int i = 0; i < 10 * per_class; ++i) {
    write_noise(root / std::to_string(i % 10) / (std::to_string(i) + ".png"), 40, 33, 1000 * seed + i);
  }
  return root;
}

fs::path folders_of(const std::map<std::string, int>& counts, uint64_t seed) {
  const fs::path root = scratch_folder();
  for (const auto& [name, count] : counts) {
    for (int i = 0; i < count; ++i) write_noise(root / name / (std::to_string(i) + ".png"), 32, 32, ++seed);
  }
  return root;
}

const fs::path& noise_folder() {
  static const fs::path folder = [] {
    const fs::path made = scratch_folder();
    write_noise(made / "a.png", 40, 33, 1);
    write_noise(made / "b.png", 34, 51, 2);
    return made;
  }();
  return folder;
}

namespace {

// The steps of a program as `bench --profile` lists them, without their times.
std::string steps_of(const std::string& profile) {
  std::string steps;
  size_t column = std::string::npos;
  for (const std::string& line : lines_of(profile)) {
    if (line.starts_with("  ") && line.size() > column) steps += line.substr(column) + "\n";
    if (line.ends_with("  step")) column = line.size() - 4;
  }
  return steps;
}

}  // namespace

std::string index_of(const fs::path& images, const std::string& model, const Arguments& more,
                     const std::map<std::string, std::string>& environment) {
  const fs::path folder = scratch_folder(), features = folder / "features.npy", index = folder / "features.index";
  const Arguments with_model = model.empty() ? Arguments{} : Arguments{"-m", model};
  run(Arguments{"embed", images, "-o", features} + with_model + more, environment);
  run({"index", features, "-o", index});
  return index;
}

std::string observe(const std::string& command, const std::string& model, const Arguments& more,
                    const std::map<std::string, std::string>& environment) {
  static const fs::path train = noise_dataset(3, 3), test = noise_dataset(4, 4);
  const std::string images = noise_folder(), image = noise_folder() / "a.png", output = scratch_folder() / "output.npy";
  const bool positional = command == "convert" || command == "bench";
  Arguments arguments{command};
  if (!model.empty()) arguments = arguments + (positional ? Arguments{model} : Arguments{"-m", model});
  const auto ran = [&](const Arguments& own) { return run(arguments + own + more, environment).out; };
  const auto written = [&](const Arguments& own) { return ran(own), content_of(output); };
  if (command == "classify") return written({images, "--logits", output});
  if (command == "embed") return written({images, "-o", output});
  if (command == "attention") return written({image, "--raw", output});
  if (command == "explain") {
    const std::string page = scratch_folder() / "page.html";
    ran({image, "-o", page});
    return facts_of_page(page);
  }
  if (command == "pca") {
    const fs::path folder = scratch_folder() / "overlays";
    ran({images, "-o", folder, "--raw"});
    return content_of(folder / "a.npy") + content_of(folder / "b.npy");
  }
  if (command == "eval") return written({test, "--logits", output});
  if (command == "search") return ran({index_of(images, model, more, environment), images, "--format", "json"});
  if (command == "duplicates") return ran({images, "--threshold", "-1", "--format", "json"});
  if (command == "knn") return ran({train, test, "--k", "4", "--quiet"});
  if (command == "audit") return written({train, "--scores", output, "--quiet"});
  if (command == "inspect") return ran({"--trace", image});
  if (command == "bench") return steps_of(ran({"--batch", "1", "--profile"}));
  ran({"-o", output});  // convert
  return content_of(output + "/config.json") + content_of(output + "/model.safetensors");
}

namespace {

using Json = nlohmann::json;
using Change = std::function<void(Json&)>;

std::string changed_model(const Change& change) { return with_config("timm_token", change); }

// The option has the same effect as another config.json, and that is a different one from none.
void check_as_config(const std::string& command, const Arguments& option, const Change& change) {
  const std::string with = observe(command, small_model(), option);
  EXPECT_EQ(with, observe(command, changed_model(change), {}));
  EXPECT_NE(with, observe(command, small_model(), {}));
}

// A field of the preprocessing.
void check_as_setting(const std::string& command, const Arguments& option, const Json& settings) {
  check_as_config(command, option, [&](Json& config) { config["pretrained_cfg"].update(settings); });
}

void check_image_size(const std::string& command) {
  check_as_config(command, {"--image-size", "48,40"}, [&](Json& config) {
    config["pretrained_cfg"]["input_size"] = {3, 48, 40};
    config["model_args"]["dynamic_img_size"] = true;
  });
  const std::string square = observe(command, small_model(), {"--image-size", "48"});
  EXPECT_EQ(square, observe(command, small_model(), {"--image-size", "48,48"}));
}

// bench takes images of random values.
void check_image_size_of_bench() {
  for (const std::string& model : {small_model(), std::string("cifar_vit_d192")}) {
    const std::string steps = observe("bench", model, {"--image-size", "48,40"});
    EXPECT_TRUE(contains(steps, "input [1, 3, 48, 40]")) << steps;
  }
  EXPECT_TRUE(contains(observe("bench", small_model()), "input [1, 3, 32, 32]"));
  const Arguments training{"bench", small_model(), "--batch", "1", "--train", "--seconds", "0.001"};
  const double small = json_of(training)["gflop_per_s"], min_ms = json_of(training)["min_ms"];
  EXPECT_GT(small * min_ms, 0);
  const Json large = json_of(training + Arguments{"--image-size", "64"}), usual = json_of(training);
  const auto operations = [](const Json& result) {
    return result["gflop_per_s"].get<double>() * result["min_ms"].get<double>();
  };
  EXPECT_GT(operations(large), 3.5 * operations(usual));  // four times as many patches
}

void check_model(const std::string& command) {
  const fs::path home = scratch_folder();
  const std::string other = changed_model([](Json& config) { config["model_args"]["act_layer"] = "relu"; });
  fs::create_directories(home / "models");
  fs::copy(other, home / "models/imagenet-tiny", fs::copy_options::recursive);
  const std::map<std::string, std::string> environment{{"VITRAIL_HOME", home.string()}};
  const std::string without = observe(command, "", {}, environment);
  EXPECT_EQ(without, observe(command, other));
  EXPECT_NE(without, observe(command, small_model(), {}, environment));
}

void check_config(const std::string& command) {
  const Change relu = [](Json& config) { config["model_args"]["act_layer"] = "relu"; };
  check_as_config(command, {"--config", changed_model(relu) + "/config.json"}, relu);
}

// The tensors have names that no family has.
void check_key_map(const std::string& command) {
  const fs::path model = with_config("timm_token", [](Json&) {});
  std::vector<std::pair<std::string, Tensor>> renamed;
  const weights::Checkpoint original = weights::Checkpoint::open(fs::path(small_model()) / "model.safetensors");
  for (const weights::TensorInfo& info : original.tensors())
    renamed.emplace_back(info.name + "/odd", original.tensor(info.name));
  weights::write_safetensors(model / "model.safetensors", renamed, {});
  std::ofstream(model / "map.json") << R"({"name": "odd", "rules": [{"from": "(.*)/odd", "to": "$1"}]})";
  EXPECT_EQ(observe(command, model, {"--key-map", model / "map.json"}), observe(command, small_model()));
  const bool positional = command == "convert" || command == "bench";
  Arguments without{command, positional ? "" : "-m", model.string()};
  std::erase(without, "");
  if (command == "convert" || command == "pca") without = without + Arguments{"-o", scratch_folder() / "out"};
  if (command == "embed") without = without + Arguments{"-o", model / "out.npy"};
  if (command == "attention") without = without + Arguments{"--raw", model / "out.npy"};
  if (command == "explain") without = without + Arguments{"-o", model / "out.html"};
  if (command == "knn") without.push_back(model);
  if (command == "search") without.push_back(index_of(noise_folder(), small_model()));
  if (!positional && command != "inspect") without.push_back(model);
  const ProgramResult result = run_program(without);
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "give a key map")) << result.err;
}

// An adapter with a new head, and a model with what it adds.
struct AdaptedModel {
  fs::path adapter = scratch_folder() / "adapter",
           merged = with_config("timm_token", [](Json&config) { config["num_classes"] = 12; });
  AdaptedModel() {
    const std::string adapted = "blocks.0.attn.qkv.weight";
    const weights::LoraAdapter lora{
        .parts = {{adapted, {Tensor::randn({2, 18}, 1), Tensor::randn({54, 2}, 2), 0.5}}},
        .tensors = {{"head.weight", Tensor::randn({12, 18}, 3)}, {"head.bias", Tensor::zeros({12})}},
        .path = {}};
    weights::write_lora_adapter(adapter, lora, "base");
    std::vector<std::pair<std::string, Tensor>> tensors;
    const weights::Checkpoint original = weights::Checkpoint::open(fs::path(small_model()) / "model.safetensors");
    for (const weights::TensorInfo& info : original.tensors()) {
      const auto replaced = lora.tensors.find(info.name);
      const Tensor tensor = replaced == lora.tensors.end() ? original.tensor(info.name) : replaced->second;
      tensors.emplace_back(info.name,
                           info.name == adapted ? weights::add_lora_part(tensor, lora.parts.at(adapted)) : tensor);
    }
    weights::write_safetensors(merged / "model.safetensors", tensors, {});
  }
};

void check_adapter(const std::string& command) {
  const AdaptedModel model;
  const std::string adapted = observe(command, small_model(), {"--adapter", model.adapter});
  EXPECT_EQ(adapted, observe(command, model.merged));
  EXPECT_NE(adapted, observe(command, small_model()));
}

void check_tome(const std::string& command) {
  const std::string merged = observe(command, small_model(), {"--tome", "3"});
  EXPECT_NE(merged, observe(command, small_model()));
  EXPECT_NE(merged, observe(command, small_model(), {"--tome", "2"}));
  EXPECT_EQ(observe(command, small_model(), {"--tome", "0"}), observe(command, small_model()));
}

// A PNG whose EXIF orientation is a rotation, and its rotated pixels.
struct TurnedImage {
  fs::path folder = scratch_folder(), turned = folder / "0/turned.png", upright = scratch_folder() / "0/upright.png";
  TurnedImage() {
    for (const fs::path& file : {turned, upright}) fs::create_directories(file.parent_path());
    fs::copy_file(fixture("image/decode/exif_6.png"), turned);
    image::write_png(upright, image::read_image(turned, {.apply_exif = true}));
  }
};

void check_exif(const std::string& command) {
  const TurnedImage images;
  const auto observed = [&](const fs::path& image, const Arguments& more) {
    const fs::path output = scratch_folder() / (command == "pca" ? "x" : "x.npy");
    if (command == "explain") {
      run(Arguments{command, "-m", small_model(), image, "-o", output.string() + ".html"} + more);
      return facts_of_page(output.string() + ".html");
    }
    if (command == "pca") {
      run(Arguments{command, "-m", small_model(), image, "-o", output, "--raw"} + more);
      return content_of(output / image.stem().replace_extension(".npy"));
    }
    const fs::path input = command == "eval" ? image.parent_path().parent_path() : image;
    const std::string option = command == "embed" ? "-o" : command == "attention" ? "--raw" : "--logits";
    run(Arguments{command, "-m", small_model(), input, option, output} + more);
    return content_of(output);
  };
  EXPECT_EQ(observed(images.turned, {"--exif"}), observed(images.upright, {}));
  EXPECT_NE(observed(images.turned, {"--exif"}), observed(images.turned, {}));
}

// Training images: the upright pixels in class 0, the stored ones in class 1.
void check_exif_of_knn() {
  const TurnedImage images;
  const fs::path train = images.upright.parent_path().parent_path();
  fs::create_directories(train / "1");
  image::write_png(train / "1/stored.png", image::read_image(images.turned));
  const Arguments arguments{"knn", "-m", small_model(), train, images.folder, "--k", "1"};
  EXPECT_EQ(json_of(arguments)["top1"], 0);
  EXPECT_EQ(json_of(arguments + Arguments{"--exif"})["top1"], 1);
}

void check_exif_of_anomaly() {
  const TurnedImage images;
  const std::string bank = scratch_folder() / "bank";
  const auto fitted = [&](const fs::path& image, const Arguments& more) {
    run(Arguments{"anomaly", "fit", image, "-m", small_model(), "-o", bank, "--coreset", "1", "--quiet", "--force"} +
        more);
    return content_of(bank);
  };
  const auto score = [&](const fs::path& image, const Arguments& more) {
    return json_of(Arguments{"anomaly", "-m", bank, image} + more)["score"].get<double>();
  };
  EXPECT_EQ(fitted(images.turned, {"--exif"}), fitted(images.upright, {}));
  EXPECT_NE(fitted(images.turned, {}), fitted(images.upright, {}));
  EXPECT_EQ(score(images.turned, {"--exif"}), score(images.upright, {}));
  EXPECT_NE(score(images.turned, {}), score(images.upright, {}));
}

// The pixels of both are one image's only with the option.  An index that tells its preprocessing was made with it, or
// refuses it.
void check_exif_of_search() {
  const TurnedImage images;
  const std::string index = index_of(images.upright, small_model());
  const Arguments arguments{"search", "-m", small_model(), index, images.turned, "--format", "json"};
  EXPECT_EQ(run_program(arguments + Arguments{"--exif"}).status, 1);
  fs::remove(index + ".json");
  const auto score = [&](const Arguments& more) {
    return json_of(arguments + more)["results"][0]["score"].get<double>();
  };
  EXPECT_NEAR(score({"--exif"}), 1, 1e-5);
  EXPECT_LT(score({}), 0.999);
}

void check_exif_of_duplicates() {
  const TurnedImage images;
  const Arguments arguments{"duplicates",  "-m",     small_model(), images.turned, images.upright,
                            "--threshold", "0.9999", "--format",    "json"};
  EXPECT_EQ(json_of(arguments + Arguments{"--exif"})["images"].size(), 2u);
  EXPECT_EQ(run(arguments).out, "");
}

void check_exif_of_audit() {
  const TurnedImage images;
  const fs::path set = scratch_folder();
  for (const auto& [name, image] : {std::pair("a", images.turned), std::pair("b", images.upright)}) {
    fs::create_directories(set / name);
    fs::copy(image, set / name);
  }
  const Arguments arguments{"audit", set, "-m", small_model(), "--threshold", "0.9999", "--quiet", "--format", "json"};
  const auto findings = [&](const Arguments& more) { return json_of(arguments + more)["findings"].size(); };
  EXPECT_EQ(findings({"--exif"}), findings({}) + 1) << "near-identical images";
}

// The largest resident size in KiB of a run of the program.
int64_t peak_memory(const Arguments& arguments) {
  const std::string name = program();
  std::vector<char*> argv{const_cast<char*>(name.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("MALLOC_MMAP_THRESHOLD_", "131072", 1);  // glibc gives back what is freed
    const bool quiet = std::freopen("/dev/null", "w", stdout) && std::freopen("/dev/null", "w", stderr);
    if (quiet) ::execv(name.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(::wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0) << ::testing::PrintToString(arguments);
  return usage.ru_maxrss;
}

// A larger batch holds more images in memory at once; nothing else is seen of it.
void check_batch(const std::string& command) {
  VITRAIL_SKIP_MEMORY_WITH_SANITIZER();
  const int64_t side = 256, images = 96, image_kib = 3 * side * side * 4 / 1024;
  const fs::path folder = scratch_folder(), csv = folder / "images.csv",
                 output = folder / (command == "embed" ? "out.npy" : "out");
  for (const uint64_t seed : {5, 6}) write_noise(folder / (seed == 5 ? "a.png" : "b.png"), 64, 64, seed);
  const std::set<std::string> takes_images{"classify", "embed", "pca", "search", "duplicates"};
  Arguments arguments{command, "-m", small_model(), "--image-size", std::to_string(side), "--threads", "1"};
  if (command == "search")
    arguments.push_back(index_of(folder / "a.png", small_model(), {"--image-size", std::to_string(side)}));
  std::ofstream rows(csv);
  for (int i = 0; i < images; ++i) {
    rows << (i == 0 ? "b.png,1\n" : "a.png,0\n");
    if (takes_images.contains(command)) arguments.push_back(folder / "a.png");
  }
  rows.close();
  if (command == "embed" || command == "pca") arguments = arguments + Arguments{"-o", output};
  if (command == "eval" || command == "audit") arguments.push_back(csv);
  if (command == "knn") arguments = arguments + Arguments{csv, csv};
  const int64_t small = peak_memory(arguments + Arguments{"--batch", "1"});
  const int64_t large = peak_memory(arguments + Arguments{"--batch", std::to_string(images)});
  EXPECT_GT(large - small, images * image_kib) << small << " KiB";
}

// Images that wait for their batch hold at most a share of it, as do those that are decoded ahead: 96 of 768 KiB, or
// about three.
void check_memory_of_batches() {
  const fs::path image = scratch_folder() / "noise.png";
  write_noise(image, 64, 64, 5);
  Arguments arguments{"classify", "-m", small_model(), "--image-size", "256", "--threads", "1", "--batch", "96"};
  for (int i = 0; i < 96; ++i) arguments.push_back(image);
  const int64_t many = peak_memory(arguments), few = peak_memory(arguments + Arguments{"--decode-memory", "4"});
  EXPECT_GT(many - few, 90 * 768) << few << " KiB";
}

// Eight threads decode images of 48 MiB, or one thread at a time.  Buffers of that size leave the heap when they are
// freed, so that the peak is that of one moment.
void check_decode_memory() {
  VITRAIL_SKIP_MEMORY_WITH_SANITIZER();
  check_memory_of_batches();
  const fs::path image = scratch_folder() / "large.png";
  image::write_png(image, image::make_image(4096, 4096, 3));
  Arguments arguments{"classify", "-m", small_model(), "--threads", "8"};
  for (int i = 0; i < 8; ++i) arguments.push_back(image);
  const int64_t many = peak_memory(arguments), few = peak_memory(arguments + Arguments{"--decode-memory", "1"});
  EXPECT_GT(many - few, 3 * 48 * 1024) << few << " KiB";
}

// A layer whose weights have 275 MiB, within a limit and beyond it.
void check_max_memory() {
  VITRAIL_SKIP_MEMORY_WITH_SANITIZER();
  const Arguments arguments{"inspect", "layer:mlp", "--set", "in_features=3000", "--threads", "1", "--max-memory"};
  EXPECT_EQ(run_program(arguments + Arguments{"1200"}).status, 0);
  const ProgramResult refused = run_program(arguments + Arguments{"200"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.err, "vitrail: error: out of memory\n");
}

}  // namespace

OptionEffects model_option_effects() {
  using Check = void (*)(const std::string&);
  const std::pair<const char*, Check> shared[] = {
      {"--config", check_config},
      {"--key-map", check_key_map},
      {"--adapter", check_adapter},
      {"--image-size", check_image_size},
      {"--preset",
       [](const std::string& command) {
         check_as_setting(command, {"--preset", "inception"}, {{"mean", {0.5, 0.5, 0.5}}, {"std", {0.5, 0.5, 0.5}}});
       }},
      {"--mean",
       [](const std::string& command) {
         check_as_setting(command, {"--mean", "0.1,0.9,0.3"}, {{"mean", {0.1, 0.9, 0.3}}});
       }},
      {"--std",
       [](const std::string& command) {
         check_as_setting(command, {"--std", "0.7,0.1,0.4"}, {{"std", {0.7, 0.1, 0.4}}});
       }},
      {"--interpolation",
       [](const std::string& command) {
         check_as_setting(command, {"--interpolation", "nearest"}, {{"interpolation", "nearest"}});
       }},
      {"--crop-pct",
       [](const std::string& command) {
         check_as_setting(command, {"--crop-pct", "0.5"}, {{"crop_pct", 0.5}});
       }},
      {"--crop-mode", [](const std::string& command) {
         check_as_setting(command, {"--crop-mode", "squash"}, {{"crop_mode", "squash"}});
       }}};
  OptionEffects effects;
  const auto add = [&effects](const std::string& command, const std::string& names, auto check) {
    effects.push_back({command, names, [check, command] { check(command); }});
  };
  for (const std::string command :
       {"classify", "embed", "attention", "explain", "pca", "eval", "knn", "search", "duplicates", "audit", "inspect"})
    add(command, "-m,--model", check_model);
  for (const std::string command : {"classify", "embed", "attention", "explain", "pca", "eval", "knn", "search",
                                    "duplicates", "audit", "inspect", "convert"}) {
    for (const auto& [names, check] : shared) add(command, names, check);
  }
  for (const std::string command : {"classify", "embed", "eval", "bench"}) add(command, "--tome", check_tome);
  for (const std::string command : {"classify", "embed", "attention", "explain", "pca", "eval"})
    add(command, "--exif", check_exif);
  for (const std::string command : {"classify", "embed", "pca", "eval", "knn", "search", "duplicates", "audit"})
    add(command, "--batch", check_batch);
  add("bench", "--config", check_config);
  add("bench", "--key-map", check_key_map);
  add("bench", "--adapter", check_adapter);
  effects.push_back({"bench", "--image-size", check_image_size_of_bench});
  effects.push_back({"knn", "--exif", check_exif_of_knn});
  effects.push_back({"search", "--exif", check_exif_of_search});
  effects.push_back({"duplicates", "--exif", check_exif_of_duplicates});
  effects.push_back({"audit", "--exif", check_exif_of_audit});
  effects.push_back({"anomaly", "--exif", check_exif_of_anomaly});
  effects.push_back({"anomaly fit", "--exif", check_exif_of_anomaly});
  effects.push_back({"", "--decode-memory", check_decode_memory});
  effects.push_back({"", "--max-memory", check_max_memory});
  return effects;
}

}  // namespace vitrail::testing
