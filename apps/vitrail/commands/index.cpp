// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/embed/embedding_info.h"
#include "apps/vitrail/embed/embedding_rows.h"
#include "apps/vitrail/input/path_list.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/output/table_format.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/analysis/flat_index.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRowsPerRead = 1024;

struct IndexCommandOptions {
  std::vector<std::string> embeddings;
  std::string output, dtype = "fp32";
  TableFormat format;
  bool force = false;
};

// Calls on_block(rows, count) with all rows, in order.
void for_each_block(const EmbeddingRows& rows, const char* what, bool quiet,
                    const std::function<void(const float*, int64_t)>& on_block) {
  Progress progress(what, static_cast<size_t>(rows.count()), quiet);
  std::vector<float> block(static_cast<size_t>(kRowsPerRead * rows.width()));
  for (int64_t begin = 0; begin < rows.count(); begin += kRowsPerRead) {
    const int64_t count = std::min(kRowsPerRead, rows.count() - begin);
    rows.read(begin, count, block.data());
    on_block(block.data(), count);
    progress.step(count);
  }
}

// What the embeddings were made with.  None if a part of them does not tell.
std::optional<EmbeddingInfo> common_info(const EmbeddingRows& rows) {
  std::optional<EmbeddingInfo> common;
  for (const fs::path& file : rows.files()) {
    auto info = read_embedding_info(info_path(file));
    if (!info) info = read_embedding_info(info_path(file.parent_path().empty() ? "." : file.parent_path()));
    if (!info) {
      warn(file.string() + ": no record of its model is beside it: searches cannot check theirs");
      return std::nullopt;
    }
    if (common) {
      check_same_embedding(*common, *info, file.string());
      check_same_preprocessing(*common, *info, file.string());
    }
    if (!common) common = std::move(info);
  }
  return common;
}

// The fraction of the 10 nearest rows of some rows that the index finds.
double recall_of(const analysis::FlatIndex& index, const EmbeddingRows& rows) {
  constexpr int64_t kMaxQueries = 256, kNearest = 10;
  const int64_t queries = std::min(kMaxQueries, rows.count());
  const Tensor values = Tensor::empty({queries, rows.width()});
  for (int64_t q = 0; q < queries; ++q)
    rows.read(q * rows.count() / queries, 1, values.data<float>() + q * rows.width());
  const auto exact = analysis::nearest_rows(values, rows, kNearest),
             found = analysis::nearest_rows(values, index, kNearest);
  int64_t hits = 0, expected = 0;
  for (size_t q = 0; q < exact.size(); ++q) {
    for (const analysis::Neighbor& neighbor : exact[q])
      hits += std::ranges::count(found[q], neighbor.row, &analysis::Neighbor::row);
    expected += std::ssize(exact[q]);
  }
  return static_cast<double>(hits) / static_cast<double>(expected);
}

void write_index(const EmbeddingRows& rows, const IndexCommandOptions& options, const GlobalOptions& global) {
  const bool quantised = options.dtype == "int8";
  const std::optional<EmbeddingInfo> info = common_info(rows);
  std::vector<float> trained;
  if (quantised) {
    analysis::ColumnRanges ranges(rows.width());
    for_each_block(rows, "ranges of vectors", global.quiet,
                   [&](const float* block, int64_t count) { ranges.include(block, count); });
    trained = ranges.trained();
  }
  analysis::FlatIndexWriter index(options.output, quantised ? DType::i8 : DType::f32, rows.width(), trained);
  AtomicFile names(options.output + ".txt"), record(options.output + ".json");
  for_each_block(rows, "vectors", global.quiet, [&](const float* block, int64_t count) { index.add(block, count); });
  rows.for_each_name([&](const std::string& name) { names.write(path_line(name) + "\n"); });
  if (info) record.write(to_json(*info));
  std::vector<AtomicFile*> files{&index.finish(), &names};
  if (info) {
    files.push_back(&record);
  } else {
    const std::string old_record = options.output + ".json";
    std::error_code error;
    fs::remove(old_record, error);
    if (error) throw Error(old_record, "the old index's record, to remove it", error.message());
  }
  AtomicFile::commit_together(files);
}

// The index, its names and its record may not replace the embeddings or what is beside them.
void check_no_input(const EmbeddingRows& rows, const IndexCommandOptions& options) {
  const std::string &output = options.output, names = output + ".txt", record = output + ".json";
  std::vector<std::string> inputs;
  for (const fs::path& file : rows.files()) {
    for (const char* extension : {".npy", ".txt", ".json", ".jsonl"})
      inputs.push_back(fs::path(file).replace_extension(extension).string());
  }
  check_outputs({{"-o", output, Kind::index},
                 {"-o (paths)", names, Kind::paths, {output, record}},
                 {"-o (model)", record, Kind::record}},
                inputs, options.force);
}

int index(const IndexCommandOptions& options, const GlobalOptions& global) {
  const ComputeTeam team(global.threads > 0 ? global.threads : available_threads());
  const EmbeddingRows rows(options.embeddings);
  check_no_input(rows, options);
  if (rows.count() == 0) throw Error("EMBEDDINGS", "at least one vector", "none");
  write_index(rows, options, global);
  nlohmann::ordered_json report{
      {"vectors", rows.count()}, {"width", rows.width()}, {"dtype", options.dtype}, {"failed_images", rows.failed()}};
  if (options.dtype == "int8") report["recall_at_10"] = recall_of(analysis::FlatIndex(options.output), rows);
  print_result(report, options.format);
  return 0;
}

}  // namespace

void add_index(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<IndexCommandOptions>();
  CLI::App* command = program.add_subcommand("index", "Make a searchable index of features");
  command->footer("Example: vitrail index features.npy -o photos.index");
  command->add_option("EMBEDDINGS", options->embeddings, "Arrays of `vitrail embed` (.npy), or folders with some")
      ->required();
  command
      ->add_option(
          "-o,--output", options->output,
          "The index, a file of FAISS (IndexFlatIP); the images' paths are in INDEX.txt, the model in INDEX.json")
      ->required();
  add_field_options(*command, [options](Fields& f) {
    f.choice({"dtype", "fp32, or int8 for a quarter of the size, which reports its recall against fp32"},
             options->dtype, {"fp32", "int8"});
  });
  add_force_to(*command, options->force);
  options->format.add_to(*command);
  command->callback([options, &global, &run] { run = [options, &global] { return index(*options, global); }; });
}

}  // namespace vitrail::app
