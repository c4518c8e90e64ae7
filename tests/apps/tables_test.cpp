// SPDX-License-Identifier: Apache-2.0
// The numbers of tables: each is that of the report, in the column of its title.
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <map>

#include "tests/apps/option_effects.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/metrics/classification_report.h"
#include "vitrail/data/metrics/multi_label_report.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

__attribute__((format(printf, 1, 2))) std::string printed(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// The lines from the one that begins with `title` to the next empty one.
std::vector<std::string> section_of(const std::string& text, const std::string& title) {
  const std::vector<std::string> lines = lines_of(text);
  auto begin = std::ranges::find_if(lines, [&](const std::string& line) { return line.starts_with(title); });
  if (begin == lines.end()) return {};
  return {begin, std::find(begin, lines.end(), "")};
}

std::string metrics_text(const data::ClassMetrics& metrics) {
  return printed("%9.4f  %6.4f  %6.4f", metrics.precision, metrics.recall, metrics.f1);
}

TEST(EvalTable, HasTheNumbersOfTheReport) {
  const std::map<std::string, int> counts{{"0", 3}, {"1", 1}, {"2", 2}, {"5", 1}};
  const fs::path root = folders_of(counts), logits_file = scratch_folder() / "l.npy";
  const std::string out = run({"eval", "-m", small_model(), root, "--logits", logits_file, "--quiet"}).out;
  const std::vector<float> logits = read_npy(logits_file).f32;
  data::ClassificationReport report(10);
  size_t row = 0;
  for (const auto& [name, count] : counts) {
    for (int i = 0; i < count; ++i) report.add({logits.data() + 10 * row++, 10}, std::stoi(name), "image");
  }
  EXPECT_TRUE(contains(out, printed("\ncalibration error %.4f\n", report.calibration_error()))) << out;
  const std::vector<std::string> table = section_of(out, "class ");
  ASSERT_EQ(table.size(), report.classes().size() + 3) << out;
  const auto expected = [](const std::string& name, const data::ClassMetrics& metrics) {
    return printed("%-16s  %7d  ", name.c_str(), static_cast<int>(metrics.support)) + metrics_text(metrics);
  };
  for (size_t i = 0; i < report.classes().size(); ++i) {
    const int64_t label = report.classes()[i];
    EXPECT_EQ(table[i + 1], expected(std::to_string(label), report.of_class(label)));
  }
  EXPECT_EQ(table[table.size() - 2], expected("macro average", report.macro_average()));
  EXPECT_EQ(table.back(), expected("weighted average", report.weighted_average()));
  const std::vector<std::string> matrix = section_of(out, "confusion (a row for each label");
  ASSERT_EQ(matrix.size(), report.classes().size() + 1) << out;
  for (size_t i = 0; i < report.classes().size(); ++i) {
    std::string want = std::to_string(report.classes()[i]);
    for (const int64_t prediction : report.classes()) {
      const auto found = report.confusion().find({report.classes()[i], prediction});
      want += printed("  %5d", found == report.confusion().end() ? 0 : static_cast<int>(found->second));
    }
    EXPECT_EQ(matrix[i + 1], want);
  }
}

// More classes than a matrix has: the pairs that are confused most, and some of the wrong images.
TEST(EvalTable, OfManyClassesListsPairsByTheirImages) {
  std::map<std::string, int> counts;
  for (int i = 0; i < 23; ++i) counts["class" + std::to_string(10 + i)] = 1 + i % 3;
  const fs::path root = folders_of(counts), csv = scratch_folder() / "p.csv";
  const std::string out =
      run({"eval", "-m", fixture("models/hf_clip"), root, "--zeroshot", "--predictions", csv, "--quiet"}).out;
  struct Wrong {
    double probability;
    std::string text;
  };
  std::map<std::pair<std::string, std::string>, int> pairs;
  std::vector<Wrong> wrong;
  for (const std::string& row : lines_of(content_of(csv))) {
    char label[32] = "", prediction[32] = "";
    double probability = 0, of_label = 0;
    const std::string numbers = row.substr(row.find(',') + 1);
    if (std::sscanf(numbers.c_str(), "%31[^,],%31[^,],%lf,%lf", label, prediction, &probability, &of_label) != 4)
      continue;  // the title
    EXPECT_LE(of_label, probability) << row;
    if (std::string(label) == prediction) continue;
    ++pairs[{label, prediction}];
    EXPECT_LT(of_label, probability) << row;
    wrong.push_back({probability, printed("%s (is %s)  ", prediction, label) + row.substr(0, row.find(','))});
  }
  ASSERT_GT(pairs.size(), 20U);
  EXPECT_TRUE(section_of(out, "confusion (a row").empty());
  std::vector<std::pair<std::pair<std::string, std::string>, int>> order(pairs.begin(), pairs.end());
  std::ranges::stable_sort(order, std::greater<>(), [](const auto& pair) { return pair.second; });
  const std::vector<std::string> confused = section_of(out, "most confused classes");
  ASSERT_EQ(confused.size(), 21U) << out;
  for (size_t i = 0; i < 20; ++i) {
    const auto& [names, count] = order[i];
    EXPECT_EQ(confused[i + 1], printed("%5d  %s as %s", count, names.first.c_str(), names.second.c_str()));
  }
  const std::vector<std::string> listed = section_of(out, "wrong images, least confident first");
  ASSERT_EQ(listed.size(), 22U) << out;
  EXPECT_EQ(listed.back(), printed("… %zu more; --predictions FILE.csv has all", wrong.size() - 20));
  std::ranges::stable_sort(wrong, {}, &Wrong::probability);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(std::ranges::any_of(wrong, [&](const Wrong& image) {
      return listed[i + 1] == printed("%6.1f %%  ", 100 * image.probability) + image.text;
    })) << listed[i + 1];
    EXPECT_TRUE(listed[i + 1].starts_with(printed("%6.1f %%", 100 * wrong[i].probability))) << listed[i + 1];
  }
}

// The probabilities of a row are those of its logits.
TEST(EvalPredictions, HaveTheProbabilityOfThePredictionAndOfTheLabel) {
  const fs::path root = folders_of({{"0", 2}, {"3", 2}}), files = scratch_folder();
  run({"eval", "-m", small_model(), root, "--logits", files / "l.npy", "--predictions", files / "p.csv", "--quiet"});
  const std::vector<float> logits = read_npy(files / "l.npy").f32;
  const std::vector<std::string> rows = lines_of(content_of(files / "p.csv"));
  ASSERT_EQ(rows.size(), 5U);
  for (size_t i = 0; i < 4; ++i) {
    const std::span<const float> row(logits.data() + 10 * i, 10);
    const std::vector<float> probabilities = data::softmax(row, "image");
    const auto best = static_cast<size_t>(data::top_k(row, 1, "image")[0].index), label = size_t{i < 2 ? 0U : 3U};
    EXPECT_TRUE(
        rows[i + 1].ends_with(printed(",%zu,%zu,%.6g,%.6g,", label, best, probabilities[best], probabilities[label])))
        << rows[i + 1];
  }
}

TEST(EvalLabelsTable, HasTheNumbersOfTheReport) {
  const fs::path root = image_folder(4), logits_file = scratch_folder() / "l.npy";
  const std::vector<std::vector<int64_t>> labels{{0, 3}, {1}, {2, 3, 9}, {9}};
  std::ofstream list(root / "list.csv");
  list << "file,labels\n";
  for (size_t i = 0; i < labels.size(); ++i) {
    list << static_cast<char>('a' + i) << ".png,";
    for (const int64_t label : labels[i]) list << label << '|';
    list << '\n';
  }
  list.close();
  const fs::path model =
      with_config("timm_token", [](nlohmann::json& config) { config["problem_type"] = "multi_label_classification"; });
  const std::string out =
      run({"eval", "-m", model, root / "list.csv", "--logits", logits_file, "--predictions", root / "p.csv", "--quiet"})
          .out;
  const std::vector<float> logits = read_npy(logits_file).f32;
  data::MultiLabelReport report(10);
  for (size_t i = 0; i < labels.size(); ++i) report.add({logits.data() + 10 * i, 10}, labels[i], "image");
  EXPECT_TRUE(
      out.starts_with(printed("mean average precision %.4f (macro), %.4f (micro)\n",
                              report.macro_average_precision().value(), report.micro_average_precision().value())))
      << out;
  const std::vector<std::string> table = section_of(out, "class ");
  ASSERT_EQ(table.size(), 13U) << out;
  const auto expected = [](std::optional<double> precision, const data::ClassMetrics& metrics) {
    const std::string average = precision ? printed("%.4f", *precision) : "";
    return printed("  %7d  %17s  ", static_cast<int>(metrics.support), average.c_str()) + metrics_text(metrics);
  };
  for (int64_t c = 0; c < 10; ++c) {
    const std::string& line = table[static_cast<size_t>(c) + 1];
    EXPECT_TRUE(line.ends_with(expected(report.average_precision_of(c), report.of_class(c)))) << line;
  }
  EXPECT_EQ(table[11], "macro average" + expected(report.macro_average_precision(), report.macro_average()));
  EXPECT_EQ(table[12], "micro average" + expected(report.micro_average_precision(), report.micro_average()));
  const std::vector<std::string> rows = lines_of(content_of(root / "p.csv"));
  const std::vector<std::string> names = [&] {  // the columns between predictions and error
    std::vector<std::string> all;
    std::string title = rows.at(0).substr(std::string("file,labels,predictions,").size());
    for (size_t comma; (comma = title.find(',')) != title.npos; title.erase(0, comma + 1))
      all.push_back(title.substr(0, comma));
    return all;
  }();
  ASSERT_EQ(names.size(), 10U) << rows[0];
  for (size_t i = 0; i < 4; ++i) {
    std::string given, predicted, probabilities;
    for (const int64_t label : labels[i]) given += (given.empty() ? "" : "|") + names[static_cast<size_t>(label)];
    for (size_t c = 0; c < 10; ++c) {
      const float logit = logits[10 * i + c];
      if (logit > 0) predicted += (predicted.empty() ? "" : "|") + names[c];
      probabilities += printed("%.6g,", data::sigmoid(logit));
    }
    EXPECT_TRUE(rows[i + 1].ends_with(".png," + given + "," + predicted + "," + probabilities)) << rows[i + 1];
  }
}

// A wrong image has the probabilities of its prediction and of its label.
TEST(EvalReport, ShowsWrongImagesWithBothProbabilities) {
  const fs::path root = folders_of({{"0", 2}, {"3", 2}, {"7", 2}}), files = scratch_folder();
  run({"eval", "-m", small_model(), root, "--logits", files / "l.npy", "--report", files / "r.html", "--quiet"});
  const std::vector<float> logits = read_npy(files / "l.npy").f32;
  const std::string page = content_of(files / "r.html");
  int wrong = 0;
  for (size_t i = 0; i < 6; ++i) {
    const std::span<const float> row(logits.data() + 10 * i, 10);
    const std::vector<float> probabilities = data::softmax(row, "image");
    const auto best = static_cast<size_t>(data::top_k(row, 1, "image")[0].index);
    const size_t label = std::array{0, 3, 7}.at(i / 2);
    if (best == label) continue;
    ++wrong;
    EXPECT_TRUE(contains(page, printed("<span class=\"wrong\">%zu</span> %.0f %%<small>is %zu (", best,
                                       100 * probabilities[best], label) +
                                   printed("%.1f %%)</small>", 100 * probabilities[label])))
        << i;
  }
  EXPECT_GT(wrong, 0);
}

// The page tells the command in words for a shell.
TEST(EvalReport, NamesTheCommandWithItsArgumentsQuoted) {
  const fs::path folder = scratch_folder() / "Ada's 2 images", page = folder / "r.html";
  fs::create_directories(folder / "0");
  fs::copy_file(noise_folder() / "a.png", folder / "0" / "a.png");
  run({"eval", "-m", small_model(), folder, "--report", page, "--quiet"});
  std::string command = "vitrail eval -m " + small_model();
  for (const fs::path& path : {folder, page}) {
    std::string text = path.string();
    text.replace(text.find('\''), 1, "'\\''");
    command += (path == page ? " --report '" : " '") + text + "'";
  }
  EXPECT_TRUE(contains(content_of(page), "<td>" + command + " --quiet</td>")) << command;
}

// The titles of results are words.
TEST(IndexTable, HasAWordAndANumberInEachLine) {
  const fs::path folder = scratch_folder();
  run({"embed", "-m", small_model(), noise_folder(), "-o", folder / "f.npy"});
  const std::string width = std::to_string(read_npy(folder / "f.npy").shape.at(1));
  const std::string out = run({"index", folder / "f.npy", "-o", folder / "f.index", "--format", "table"}).out;
  EXPECT_EQ(lines_of(out), (std::vector<std::string>{"vectors        2", "width          " + width,
                                                     "dtype          fp32", "failed images  0"}));
}

TEST(ModelsTable, HasTheSizesOfEachArchitecture) {
  const std::string out = run({"models"}).out;
  const auto row = [&](const std::string& name) {
    for (const std::string& line : lines_of(out)) {
      if (line.starts_with(name + " ")) return line;
    }
    return std::string();
  };
  // Image, patch, width, depth, heads, millions of parameters.
  EXPECT_TRUE(row("vit_tiny_patch16_224")
                  .starts_with("vit_tiny_patch16_224                   224        16    192     "
                               "12      3      5.72 M  "))
      << out;
  EXPECT_TRUE(row("vit_base_patch16_224")
                  .starts_with("vit_base_patch16_224                   224        16    768     "
                               "12     12     86.57 M  "))
      << out;
  EXPECT_TRUE(row("sam_vit_b")
                  .starts_with("sam_vit_b                             1024        16    768     12     12"
                               "     93.74 M  "))
      << out;
}

// The names of the file are those of the modules, so that each has the elements of the tensors below it.
TEST(InspectTree, CountsTheParametersOfEachModule) {
  std::map<std::string, int64_t> elements;
  for (const std::string& line : lines_of(run({"inspect", "-m", small_model(), "--keys"}).out)) {
    char name[64] = "", dtype[16] = "";
    if (std::sscanf(line.c_str(), "%63s %15s [", name, dtype) != 2 || std::string(dtype) != "f32") continue;
    int64_t count = 1;
    for (size_t at = line.find('['); line[at] != ']'; at = line.find_first_of(",]", at + 1))
      count *= std::stoll(line.substr(at + 1));
    elements[name] = count;
  }
  EXPECT_GT(elements.size(), 20U);
  const std::vector<std::string> rows = section_of(run({"inspect", "-m", small_model(), "--tree"}).out, "module ");
  EXPECT_EQ(rows.at(0), printed("%-50s %12s", "module", "parameters"));
  ASSERT_GT(rows.size(), 10U);
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string name = rows[i].substr(0, rows[i].find(' ')), prefix = i == 1 ? "" : name + ".";
    int64_t count = 0;
    for (const auto& [tensor, numel] : elements) count += tensor.starts_with(prefix) ? numel : 0;
    EXPECT_EQ(rows[i], printed("%-50s %12lld", name.c_str(), static_cast<long long>(count)));
  }
}

// Work and time of each step add up to those of the whole.
TEST(BenchProfile, StepsAddUpToTheTotal) {
  const auto profile = json_of({"bench", small_model(), "--batch", "1", "--profile", "--format", "json"});
  double ms = 0, percent = 0, work = 0, bound = 0;
  for (const auto& step : profile["steps"]) {
    const double own = step["ms"];
    ms += own;
    percent += step["percent"].get<double>();
    work += own * step["gflop_per_s"].get<double>();
    bound += own * step["share"].get<double>();
  }
  const double total = profile["total_ms"];
  EXPECT_NEAR(ms, total, 1e-9 * total);
  EXPECT_NEAR(percent, 100, 1e-7);
  EXPECT_NEAR(work / total, profile["gflop_per_s"].get<double>(), 1e-9 * work / total);
  EXPECT_NEAR(bound / total, profile["share"].get<double>(), 1e-9 * bound / total);
}

// Forward pass, backward pass and update are the step; the operations of the backward pass are a part of it.
TEST(BenchProfile, PhasesOfTrainingAddUpToTheTotal) {
  const std::vector<std::string> lines =
      lines_of(run({"bench", small_model(), "--batch", "1", "--train", "--profile"}).out);
  ASSERT_GT(lines.size(), 5U);
  EXPECT_EQ(lines[0], "       ms      %  phase");
  std::map<std::string, double> ms, percent;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string name = lines[i].substr(18);
    ASSERT_EQ(std::sscanf(lines[i].c_str(), "%lf %lf", &ms[name], &percent[name]), 2) << lines[i];
    EXPECT_GE(ms[name], 0) << lines[i];
  }
  EXPECT_NEAR(percent["forward"] + percent["backward"] + percent["update"], 100, 0.02);
  EXPECT_NEAR(ms["forward"] + ms["backward"] + ms["update"], ms["total"], 0.0021);
  EXPECT_EQ(percent["total"], 100);
}

// A step of training takes three times the operations of a forward pass.
TEST(BenchRates, AreOfTheWorkOfAllImages) {
  const auto work_of = [](const Arguments& more) {
    const auto result = json_of(Arguments{"bench", small_model(), "--seconds", "1e-9", "--format", "json"} + more);
    const double batch = result["batch"], median = result["median_ms"];
    EXPECT_NEAR(result["images_per_second"].get<double>() * median, 1e3 * batch, 1e-6 * batch);
    return result["gflop_per_s"].get<double>() * result["min_ms"].get<double>();
  };
  const double one = work_of({"--batch", "1"});
  EXPECT_NEAR(work_of({"--batch", "3"}), 3 * one, 1e-6 * one);
  EXPECT_NEAR(work_of({"--batch", "2", "--train"}), 6 * one, 1e-6 * one);
}

// What each form tells of an option: its names, choices, variable and value, and the arguments of its command.
TEST(CompletionText, TellsNamesChoicesAndVariables) {
  struct Case {
    const char* form;
    std::vector<std::string> lines;
  };
  for (const auto& [form, lines] :
       {Case{"bash",
             {"    *:--precision) words='fp32 half bf16 int8' ;;", "    cache:@) words='ls verify rm prune' ;;",
              "    train:--preset) words='finetune probe scratch' ;;",
              "    duplicates) words+=' -h --help -m --model --config --key-map --adapter --image-size --preset --mean "
              "--std --interpolation --crop-pct --crop-mode --threshold --format --batch --exif' ;;"}},
        {"zsh",
         {"            '(--format)--format[Output format\\: text, json (one object per line) or "
          "csv]:value:(text json csv)' \\"}},
        {"fish",
         {"complete -c vitrail -n '__fish_seen_subcommand_from classify' -l format -x -a 'text json csv' -d 'Output "
          "format: text, json (one object per line) or csv'"}},
        {"man",
         {"(environment: VITRAIL_THREADS)", "(environment: VITRAIL_PRECISION)", "(environment: VITRAIL_DECODE_MEMORY)",
          "(environment: VITRAIL_MAX_MEMORY)", "(environment: VITRAIL_QUIET)",
          "\\fB\\-\\-precision\\fR fp32|half|bf16|int8", "\\fB\\-h, \\-\\-help\\fR", "\\fB\\-\\-threads\\fR VALUE",
          "\\fB\\-\\-quiet\\fR", "\\fBvitrail classify INPUT... [OPTIONS]\\fR",
          "\\fBvitrail search INDEX [INPUT...] [OPTIONS]\\fR", "\\fBINPUT\\fR"}}}) {
    const std::vector<std::string> text = lines_of(run({"completion", form}).out);
    for (const std::string& line : lines) EXPECT_GT(std::ranges::count(text, line), 0) << form << ": " << line;
  }
}

}  // namespace
}  // namespace vitrail::testing
