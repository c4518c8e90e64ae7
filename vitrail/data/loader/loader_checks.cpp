// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/loader_checks_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::data {
namespace {

void require_loader(bool holds, const std::string& option, const std::string& expected, const std::string& got) {
  if (!holds) throw Error("loader." + option, expected, got);
}

}  // namespace

void check(const LoaderOptions& options) {
  require_loader(options.batch_size >= 1 && options.batch_size <= 1 << 24, "batch_size", "at least 1",
                 str(options.batch_size));
  require_loader(options.ranks >= 1, "ranks", "at least 1", str(options.ranks));
  require_loader(options.rank >= 0 && options.rank < options.ranks, "rank", str("0 to ", options.ranks - 1),
                 str(options.rank));
  require_loader(options.ranks == 1 || options.batch_size % 2 == 0, "batch_size",
                 "an even number if there are several ranks", str(options.batch_size));
  require_loader(options.threads >= 1 && options.threads <= 1024, "threads", "1 to 1024", str(options.threads));
  require_loader(options.in_flight >= 1 && options.in_flight <= 1024, "in_flight", "1 to 1024", str(options.in_flight));
  require_loader(options.repeats >= 1, "repeats", "at least 1", str(options.repeats));
  require_loader(options.channels == 1 || options.channels == 3, "channels", "1 or 3", str(options.channels));
  require_loader(!options.mix.any() || options.unreadable != Unreadable::leave_out, "unreadable",
                 "error or replace with mixup or CutMix", "leave_out");
  require_loader(options.views.empty() || (!options.augment && !options.mix.any()), "views",
                 "neither augment, mixup nor CutMix beside views", "one");
  for (const ViewGroup& group : options.views)
    require_loader(group.count >= 1 && group.count <= 64, "views.count", "1 to 64", str(group.count));
  check(options.mix);
}

namespace {

void check_labels(const LoaderOptions& options, const Dataset& dataset, int64_t sample) {
  for (const int64_t label : dataset.labels(sample))
    require_loader(label < options.classes, "classes", str("more than the label ", label, " of ", dataset.path(sample)),
                   str(options.classes));
}

}  // namespace

void check(const LoaderOptions& options, const std::vector<int64_t>& samples, const Dataset& dataset) {
  const bool several = dataset.is_multi_label();
  require_loader(!several || !options.mix.any(), "mix", "neither mixup nor CutMix for images with several labels",
                 "one");
  require_loader(!several || !options.balance, "balance", "false for images with several labels", "true");
  for (const int64_t sample : samples) {
    require_loader(sample >= 0 && sample < dataset.size(), "subset", str("samples below ", dataset.size()),
                   str(sample));
    if (several) {
      check_labels(options, dataset, sample);
      continue;
    }
    require_loader(!options.mix.any() || dataset.label(sample) < options.mix.classes, "mix.classes",
                   str("more than the label ", dataset.label(sample), " of ", dataset.path(sample)),
                   str(options.mix.classes));
  }
  const int64_t count = static_cast<int64_t>(samples.size()), batch = options.batch_size * options.ranks;
  require_loader(!options.drop_last || batch <= count, "batch_size",
                 str("at most the ", count, " samples of the dataset", options.ranks > 1 ? ", over all ranks" : ""),
                 str(batch));
}

}  // namespace vitrail::data
