// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "apps/vitrail/audit/near_duplicates.h"
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

struct DuplicatesCommandOptions {
  ModelOptions model;
  StreamOptions images;
  double threshold = analysis::kNearIdentical;
  std::string format = "text";
};

// The images that could be read.
struct Images {
  std::vector<std::string> paths, digests;
  size_t repeated = 0;  // further names of a file, or mentions
  Tensor features;      // [n, D], of length 1
  size_t failures = 0;
};

// The digests of files that threads read.
class Digests {
 public:
  void set(size_t image, std::string digest) {
    const std::lock_guard lock(mutex_);
    digests_[image] = std::move(digest);
  }
  std::string take(size_t image) {
    const std::lock_guard lock(mutex_);
    return digests_.extract(image).mapped();
  }

 private:
  std::mutex mutex_;
  std::map<size_t, std::string> digests_;
};

Images read_images(const Model& model, const DuplicatesCommandOptions& options, const GlobalOptions& global) {
  Digests digests;
  const ImageSource source =
      image_source(options.images, model.color_mode(),
                   [&](size_t i, std::span<const std::byte> bytes) { digests.set(i, sha256(bytes)); });
  Images images;
  FileSet files;
  std::vector<float> values;
  images.failures =
      run_images(source, model, model.request_of({.l2_normalize = true}), options.images.batch, global,
                 [&](const Outcome& outcome) {
                   if (!outcome.error.empty()) return;
                   std::string digest = digests.take(outcome.index);
                   if (files.contains(outcome.path())) {  // who deletes the duplicates would delete the only copy
                     ++images.repeated;
                     return;
                   }
                   files.add(outcome.path());
                   images.paths.push_back(outcome.path());
                   images.digests.push_back(std::move(digest));
                   const Tensor row = outcome.result().contiguous();
                   values.insert(values.end(), row.data<float>(), row.data<float>() + row.numel());
                 });
  const auto count = std::ssize(images.paths);
  images.features = Tensor::from<float>({count, count == 0 ? 0 : std::ssize(values) / count}, values);
  return images;
}

std::vector<std::vector<size_t>> groups_of(const Images& images, double threshold) {
  analysis::DisjointSets groups(images.paths.size());
  std::map<std::string, size_t> first_with;
  for (size_t i = 0; i < images.digests.size(); ++i)
    groups.join(i, first_with.emplace(images.digests[i], i).first->second);
  join_similar(images.features, threshold, groups);
  return groups.several();
}

void print_group(const Images& images, const std::vector<size_t>& group, Format format, bool first_group) {
  nlohmann::ordered_json members = nlohmann::ordered_json::array();
  if (format == Format::text && !first_group) print_output("\n");
  for (const size_t i : group) {
    const bool identical = images.digests[i] == images.digests[group.front()];
    const double similarity = cosine(images.features, group.front(), i);
    if (format == Format::json) {
      members.push_back({{"path", images.paths[i]}, {"similarity", similarity}, {"identical", identical}});
    } else if (i == group.front()) {
      print_output("{}\n", escaped(images.paths[i]));
    } else {
      print_output("  {}  {}\n", identical ? "identical" : fmt::format("{:9.4f}", similarity),
                   escaped(images.paths[i]));
    }
  }
  if (format == Format::json) print_json({{"images", members}});
}

int duplicates(const DuplicatesCommandOptions& options, const GlobalOptions& global) {
  const Model model = load_model(options.model, global);
  const Images images = read_images(model, options, global);
  const ComputeTeam team(model.session().threads());
  const auto groups = groups_of(images, options.threshold);
  for (const auto& group : groups)
    print_group(images, group, format_from_name(options.format), &group == &groups.front());
  if (images.repeated > 0)
    warn(str(images.repeated, images.repeated == 1 ? " image is" : " images are",
             " named several times and counted once"));
  if (!global.quiet) print_note(counted(images.paths.size(), "image") + ", " + counted(groups.size(), "group"));
  return images.failures == 0 ? 0 : 1;
}

}  // namespace

void add_duplicates(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<DuplicatesCommandOptions>();
  CLI::App* command = program.add_subcommand("duplicates", "List near-identical images");
  command->footer("Example: vitrail duplicates photos/ -m MODEL");
  options->images.add_inputs_to(*command)->required();
  options->model.add_to(*command);
  add_field_options(*command, [options](Fields& f) {
    f.number({"threshold",
              "Cosine similarity of features from which two images are near-identical; files with the same bytes "
              "always are"},
             options->threshold, {-1, 1});
    f.choice({"format", "Output format: text, or json (an object for each group)"}, options->format, {"text", "json"});
  });
  options->images.add_to(*command);
  command->callback([options, &global, &run] { run = [options, &global] { return duplicates(*options, global); }; });
}

}  // namespace vitrail::app
