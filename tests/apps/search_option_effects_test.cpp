// SPDX-License-Identifier: Apache-2.0
// Options of index, search and duplicates.
#include "tests/apps/option_effects.h"
#include "vitrail/pipeline/dual_model.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

Arguments search(const Arguments& more) {
  static const std::string index = index_of(noise_folder(), small_model());
  return Arguments{"search", index, noise_folder() / "a.png"} + more;
}

void check_output_of_index() {
  const fs::path features = scratch_folder() / "f.npy", index = scratch_folder() / "named.index";
  run({"embed", "-m", small_model(), noise_folder(), "-o", features});
  run({"index", features, "--output", index});
  EXPECT_TRUE(content_of(index).starts_with("IxFI"));
  EXPECT_EQ(content_of(index.string() + ".txt"), content_of(fs::path(features).replace_extension(".txt")));
  EXPECT_EQ(content_of(index.string() + ".json"), content_of(fs::path(features).replace_extension(".json")));
}

void check_dtype_of_index() {
  const fs::path features = scratch_folder() / "f.npy", index = scratch_folder() / "f.index";
  run({"embed", "-m", small_model(), noise_folder(), "-o", features});
  const Arguments arguments{"index", features, "-o", index};
  const nlohmann::json fp32 = json_of(arguments), int8 = json_of(arguments + Arguments{"--dtype", "int8"});
  EXPECT_TRUE(content_of(index).starts_with("IxSQ"));
  EXPECT_FALSE(fp32.contains("recall_at_10"));
  EXPECT_EQ(int8["recall_at_10"], 1.0) << "both images";
  EXPECT_EQ(json_of(arguments + Arguments{"--dtype", "fp32"}), fp32);
}

void check_format_of_index() {
  const fs::path features = scratch_folder() / "f.npy", index = scratch_folder() / "f.index";
  run({"embed", "-m", small_model(), noise_folder(), "-o", features});
  const Arguments arguments{"index", features, "-o", index, "--dtype", "int8"};
  const nlohmann::json json = json_of(arguments + Arguments{"--format", "json"});
  EXPECT_EQ(json_of(arguments), json) << "the default without a terminal";
  EXPECT_EQ(run(arguments + Arguments{"--format", "table"}).out,
            "vectors        2\nwidth          " + json["width"].dump() +
                "\ndtype          int8\nfailed images  0\nrecall at 10   1.0000\n");
}

void check_top() {
  EXPECT_EQ(json_of(search({"--format", "json"}))["results"].size(), 2u);
  EXPECT_EQ(json_of(search({"--format", "json", "--top", "1"}))["results"].size(), 1u);
}

void check_format_of_search() {
  const nlohmann::json best = json_of(search({"--format", "json"}))["results"][0];
  EXPECT_EQ(best["path"], (noise_folder() / "a.png").string());
  EXPECT_NEAR(best["score"].get<double>(), 1, 1e-5);
  const std::string text = run(search({"--format", "text"})).out;
  EXPECT_EQ(lines_of(text).size(), 3u);
  EXPECT_TRUE(contains(text, "\n  1.0000  " + (noise_folder() / "a.png").string() + "\n")) << text;
  EXPECT_EQ(run(search({})).out, text) << "the default";
}

// The scores are the cosines of the library.
void check_text() {
  const DualModel model(dual_model());
  const Tensor texts = model.embed_texts({"a cat", "a dog"});
  const Arguments arguments{"search", "-m", dual_model(), index_of(noise_folder(), dual_model())};
  const auto lines =
      json_lines(run(arguments + Arguments{"--text", "a cat", "--text", "a dog", "--format", "json"}).out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["text"], "a dog");
  for (int64_t t = 0; t < 2; ++t) {
    for (const auto& result : lines[static_cast<size_t>(t)]["results"]) {
      const Tensor image = model.embed_image(model.images().read(result["path"].get<std::string>()));
      const float cosine = model.similarity(image, texts.narrow(0, t, 1)).item<float>();
      EXPECT_NEAR(result["score"].get<float>(), cosine, 1e-5);
    }
  }
  EXPECT_EQ(run_program(arguments).status, 2) << "neither images nor a text";
}

void check_tokenizer() {
  const fs::path model = scratch_folder();
  fs::copy(dual_model(), model, fs::copy_options::recursive);
  const fs::path moved = scratch_folder();
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt", "bpe_simple_vocab_16e6.txt.gz"}) {
    std::error_code absent;
    fs::rename(model / name, moved / name, absent);
  }
  const Arguments arguments{"search", "-m", model, index_of(noise_folder(), dual_model()), "--text", "a cat"};
  EXPECT_EQ(run_program(arguments).status, 1);
  run(arguments + Arguments{"--tokenizer", moved});
}

void check_threshold_of_search() {
  const nlohmann::json all = json_of(search({"--format", "json"}))["results"];
  ASSERT_EQ(all.size(), 2u);
  const std::string between = std::to_string((all[0]["score"].get<double>() + all[1]["score"].get<double>()) / 2);
  const nlohmann::json results = json_of(search({"--format", "json", "--threshold", between}))["results"];
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0], all[0]);
}

// The query and the two images of the index.
void check_report_of_search() {
  const fs::path page = scratch_folder() / "page.html";
  EXPECT_EQ(run(search({"--report", page})).out, run(search({})).out);
  const std::string html = content_of(page);
  for (const std::string& text : {std::string("query"), (noise_folder() / "a.png").string() + "</small>",
                                  std::string(">1.0000<"), std::string("vitrail search")})
    EXPECT_TRUE(contains(html, text)) << text;
  size_t images = 0;
  for (size_t at = html.find("<img "); at != html.npos; at = html.find("<img ", at + 1)) ++images;
  EXPECT_EQ(images, 3u);
  run(search({"--report", page, "--threshold", "1"}));  // its own page
  EXPECT_NE(content_of(page), html);
}

Arguments duplicates(const Arguments& more) {
  static const fs::path folder = [] {
    const fs::path made = scratch_folder();
    fs::copy(noise_folder(), made, fs::copy_options::recursive);
    fs::copy_file(made / "a.png", made / "copy.png");
    return made;
  }();
  return Arguments{"duplicates", folder, "-m", small_model()} + more;
}

void check_threshold() {
  const auto sizes = [](const Arguments& more) {
    return json_of(duplicates({"--format", "json"}) + more)["images"].size();
  };
  EXPECT_EQ(sizes({"--threshold", "-1"}), 3u);
  EXPECT_EQ(sizes({"--threshold", "1"}), 2u) << "files with the same bytes";
}

void check_format_of_duplicates() {
  const Arguments copies = duplicates({"--threshold", "1"});
  const nlohmann::json images = json_of(copies + Arguments{"--format", "json"})["images"];
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[1]["identical"], true);
  EXPECT_NEAR(images[1]["similarity"].get<double>(), 1, 1e-5);
  const std::string text =
      images[0]["path"].get<std::string>() + "\n  identical  " + images[1]["path"].get<std::string>() + "\n";
  EXPECT_EQ(run(copies + Arguments{"--format", "text"}).out, text);
  EXPECT_EQ(run(copies).out, text) << "the default";
}

}  // namespace

OptionEffects search_option_effects() {
  return {{"index", "-o,--output", check_output_of_index},
          {"index", "--dtype", check_dtype_of_index},
          {"index", "--format", check_format_of_index},
          {"search", "--text", check_text},
          {"search", "--tokenizer", check_tokenizer},
          {"search", "--top", check_top},
          {"search", "--threshold", check_threshold_of_search},
          {"search", "--report", check_report_of_search},
          {"search", "--format", check_format_of_search},
          {"duplicates", "--threshold", check_threshold},
          {"duplicates", "--format", check_format_of_duplicates}};
}

}  // namespace vitrail::testing
