// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/search_page.h"
#include "apps/vitrail/commands/zero_shot_options.h"
#include "apps/vitrail/embed/embedding_info.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/input/path_list.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/analysis/flat_index.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/hub/hub.h"
#include "vitrail/models/bundled.h"

namespace vitrail::app {
namespace {

struct SearchCommandOptions {
  ModelOptions model;
  ZeroShotOptions texts;
  StreamOptions images;
  std::string index, format = "text";
  std::vector<std::string> queries;  // --text
  int64_t top = 5;
  std::optional<double> threshold;
  std::string report;
  bool force = false;
};

struct Query {
  bool is_text;
  std::string name;
  Tensor vector{};      // [D], of length 1; none for an image that failed
  std::string error{};  // why an image failed
};

// An index with its files.
struct OpenIndex {
  explicit OpenIndex(const std::string& path) : vectors(path), names(path + ".txt") {
    if (names.size() != vectors.count())
      throw Error(path + ".txt", str(vectors.count(), " lines, as the index's vectors"), str(names.size()));
    info = read_embedding_info(path + ".json");
  }

  analysis::FlatIndex vectors;
  PathList names;
  std::optional<EmbeddingInfo> info;
};

// The model that the index names.  It must be here: what looks like a name on the hub may be a relative path of another
// folder.
std::string model_of(const OpenIndex& index, const std::string& path) {
  const std::string& model = index.info->model;
  std::error_code unknown;
  if (std::filesystem::exists(model, unknown) || models::find_bundled(model)) return model;
  const auto name = hub::parse_name(model);
  if (name && hub::find_cached(*name)) return model;
  throw Error(path, "its model " + model, "nothing there (give -m MODEL)");
}

// Queries are preprocessed as the images of the index, unless an option says otherwise.
void take_preprocessing(const EmbeddingInfo& info, SearchCommandOptions& options) {
  if (info.exif) options.images.exif = true;
  if (!info.preprocessing) return;
  const EmbeddingPreprocessing& of = *info.preprocessing;
  ModelOptions& to = options.model;
  if (!to.image_size && of.image_size) {
    const WarningPause pause;  // the model is opened again
    // Its own size is not set, because it would then count as one whose positions are interpolated.
    if (to.open(to.path()).config.preprocessing.input_size != of.image_size) to.image_size = of.image_size;
  }
  if (to.mean.empty()) to.mean = of.mean;
  if (to.std.empty()) to.std = of.std;
  if (to.interpolation.empty()) to.interpolation = of.interpolation;
  if (!to.crop_pct) to.crop_pct = of.crop_pct;
  if (to.crop_mode.empty()) to.crop_mode = of.crop_mode;
}

// Vectors of `vitrail index` have length 1.
void tell_scores(const OpenIndex& index, const std::string& path) {
  constexpr int64_t kMaxRows = 1000;
  constexpr double kTolerance = 0.01;  // 8 bits per value change a length by less
  const int64_t count = index.vectors.count(), rows = std::min(count, kMaxRows);
  std::vector<float> vector(static_cast<size_t>(index.vectors.width()));
  double min = INFINITY, max = 0;
  for (int64_t i = 0; i < rows; ++i) {
    index.vectors.read(i * count / rows, 1, vector.data());
    const double length = std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
    min = std::min(min, length);
    max = std::max(max, length);
  }
  if (min > 1 - kTolerance && max < 1 + kTolerance) return;
  warn(
      fmt::format("{}: vectors of length {:.4g} to {:.4g}, not 1: scores are inner products, not cosine "
                  "similarities",
                  path, min, max));
}

void check_model(const Model& model, const OpenIndex& index, const SearchCommandOptions& options) {
  if (!index.info) {
    tell_scores(index, options.index);
    return warn(options.index + ": does not tell its model, which may be another one");
  }
  EmbeddingInfo query = embedding_info(model, options.model.path(), index.info->features);
  query.exif = options.images.exif;
  check_same_preprocessing(*index.info, query, options.index);
  check_same_embedding(*index.info, query, options.index);
}

std::vector<Query> text_queries(const DualModel& model, const SearchCommandOptions& options) {
  std::vector<Query> queries;
  const Tensor embeddings = model.embed_texts(options.queries);
  for (size_t i = 0; i < options.queries.size(); ++i)
    queries.push_back({true, options.queries[i], embeddings.select(0, static_cast<int64_t>(i))});
  return queries;
}

void print_result(const SearchResult& result, Format format) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (format == Format::text) print_output("{}\n", escaped(result.query));
  for (size_t i = 0; i < result.nearest.size(); ++i) {
    const auto& [row, score] = result.nearest[i];
    if (format == Format::text) print_output("  {:6.4f}  {}\n", score, escaped(result.paths[i]));
    rows.push_back({{"row", row}, {"path", result.paths[i]}, {"score", score}});
  }
  if (format == Format::json) print_json({{result.is_text ? "text" : "path", result.query}, {"results", rows}});
}

// The vectors of the queries that have one.
Tensor vectors_of(const std::vector<Query>& queries, int64_t width, const std::string& index) {
  const auto count = std::ranges::count_if(queries, [](const Query& query) { return query.error.empty(); });
  const Tensor vectors = Tensor::empty({count, width});
  int64_t row = 0;
  for (const Query& query : queries) {
    if (!query.error.empty()) continue;
    if (query.vector.numel() != width) throw Error(index, str("vectors of width ", query.vector.numel()), str(width));
    vectors.select(0, row++).copy_(query.vector);
  }
  return vectors;
}

// Prints the nearest images, and keeps them in `results` for a report.
void print_nearest(const std::vector<Query>& queries, const OpenIndex& index, const SearchCommandOptions& options,
                   int threads, std::vector<SearchResult>& results) {
  const Tensor vectors = vectors_of(queries, index.vectors.width(), options.index);
  const ComputeTeam team(threads);
  const auto nearest = analysis::nearest_rows(vectors, index.vectors, options.top);
  const Format format = format_from_name(options.format);
  auto next = nearest.begin();
  for (const Query& query : queries) {
    if (!query.error.empty()) {
      if (format == Format::json) print_json({{"path", query.name}, {"error", query.error}});
      continue;
    }
    SearchResult result{.is_text = query.is_text, .query = query.name, .nearest = *next++, .paths = {}};
    std::erase_if(result.nearest, [&](const auto& neighbor) { return options.threshold > neighbor.score; });
    for (const analysis::Neighbor& neighbor : result.nearest) result.paths.push_back(index.names.at(neighbor.row));
    print_result(result, format);
    if (!options.report.empty()) results.push_back(std::move(result));
  }
}

// Prints the results of each batch of images as soon as it has run.  Returns how many images failed.
size_t search_images(const Model& model, const OpenIndex& index, const SearchCommandOptions& options,
                     const GlobalOptions& global, std::vector<SearchResult>& results) {
  infer::FeatureOptions features = index.info ? index.info->features : infer::FeatureOptions();
  features.l2_normalize = true;
  const infer::Request request = model.request_of(features);
  std::vector<Query> queries;
  return run_images(image_source(options.images, model.color_mode()), model, request, options.images.batch, global,
                    [&](const Outcome& outcome) {
                      queries.push_back({.is_text = false, .name = outcome.path(), .error = outcome.error});
                      if (outcome.error.empty()) queries.back().vector = outcome.result();
                      if (!outcome.ends_batch) return;
                      print_nearest(queries, index, options, model.session().threads(), results);
                      queries.clear();
                    });
}

int search(SearchCommandOptions options, const GlobalOptions& global) {
  if (options.images.inputs.empty() && options.queries.empty())
    throw CLI::ValidationError("INPUT", "images, or --text");
  const OpenIndex index(options.index);
  if (options.model.model.empty() && index.info) options.model.model = model_of(index, options.index);
  if (index.info) take_preprocessing(*index.info, options);
  std::optional<DualModel> dual;
  std::optional<Model> alone;
  if (options.queries.empty()) {
    alone.emplace(options.model.path(), session_options_of(options.model, global));
  } else {
    dual.emplace(options.model.path(), session_options_of(options.model, global), options.texts.tokenizer);
  }
  const Model& model = dual ? dual->images() : *alone;
  check_model(model, index, options);
  std::vector<SearchResult> results;
  if (dual) print_nearest(text_queries(*dual, options), index, options, model.session().threads(), results);
  const size_t failures = options.images.inputs.empty() ? 0 : search_images(model, index, options, global, results);
  if (!options.report.empty()) write_search_page(options.report, options.index, results, global.command_line);
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_search(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<SearchCommandOptions>();
  CLI::App* command = program.add_subcommand("search", "Find the images of an index that are most similar");
  command->footer("Example: vitrail search photos.index query.jpg --top 10");
  command->add_option("INDEX", options->index, "Index of `vitrail index`; its model and preprocessing are the default")
      ->required();
  options->images.add_inputs_to(*command);
  command->add_option("--text", options->queries, "Search by a text (CLIP, SigLIP); may be repeated")
      ->allow_extra_args(false);
  options->texts.add_tokenizer_to(*command);
  add_field_options(*command, [options](Fields& f) {
    f.integer({"top", "Number of results"}, options->top, 1);
    f.number({"threshold", "Leave out results of a lower score: the cosine similarity of features"}, options->threshold,
             {-1, 1});
    f.choice({"format", "Output format: text or json (one object per line)"}, options->format, {"text", "json"});
  });
  command->add_option("--report", options->report, "FILE.html: a page with the queries and the images found");
  add_force_to(*command, options->force);
  options->model.add_to(*command);
  options->images.add_to(*command);
  command->callback([options, &global, &run] {
    std::vector<std::string> inputs = options->model.files();
    inputs.push_back(options->index);
    inputs.insert(inputs.end(), options->images.inputs.begin(), options->images.inputs.end());
    check_outputs({{"--report", options->report, Kind::page}}, inputs, options->force);
    run = [options, &global] { return search(*options, global); };
  });
}

}  // namespace vitrail::app
