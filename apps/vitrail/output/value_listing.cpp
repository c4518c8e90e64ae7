// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/value_listing.h"

#include <algorithm>

#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::app {
namespace {

// Modules that pass their input on follow it within one layer, which reports fewer values than this.
constexpr size_t kRecentRows = 24;

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.shape() == b.shape() && a.strides() == b.strides();
}

void print_row(const std::string& name, const Tensor& tensor) {
  const Statistics s = statistics_of(tensor);
  print_output("{:32s} {:24s} {:10.4f} {:10.4f}  {}\n", name, tensor.shape().to_string(), s.mean, s.standard_deviation,
               s.first);
}

}  // namespace

ValueListing::ValueListing(const std::vector<std::string>& slices, const weights::KeyMap* family, NpzArrays* file)
    : file_(file) {
  for (const std::string& text : slices) {
    const SliceRequest request = parse_slice_request(text);
    requests_.push_back({text, request.slice, models::traced_names(request.name, family)});
  }
  if (prints_rows()) print_output("{:32s} {:24s} {:>10s} {:>10s}  first values\n", "name", "shape", "mean", "std");
}

void ValueListing::add(const std::string& name, const Tensor& tensor) {
  if (file_) file_->add(name, tensor);
  if (!prints_rows()) return offer(name, tensor);
  const auto same =
      std::find_if(recent_.begin(), recent_.end(), [&](const Row& row) { return same_tensor(row.tensor, tensor); });
  if (same != recent_.end()) {
    print_output("{:32s} {:24s} = {}\n", name, tensor.shape().to_string(), same->name);
    return;
  }
  print_row(name, tensor);
  recent_.push_back({name, tensor});
  if (recent_.size() > kRecentRows) recent_.pop_front();
}

void ValueListing::offer(const std::string& name, const Tensor& tensor) {
  if (std::ranges::find(known_, name) == known_.end()) known_.push_back(name);  // a parameter may be in the file too
  for (Request& request : requests_) {
    for (size_t i = 0; i < std::min(request.rank, request.names.size()); ++i) {
      if (request.names[i].name != name) continue;
      request.rank = i;
      request.tensor = request.names[i].of(tensor);
    }
  }
}

bool ValueListing::complete() const {
  return std::ranges::all_of(requests_, [](const Request& request) { return request.tensor.defined(); });
}

void ValueListing::finish(const std::string& expected) const {
  for (const Request& request : requests_) {
    if (request.tensor.defined()) continue;
    const std::string& name = request.names.front().name;
    std::string found = "\"" + name + "\"";
    for (const std::string& near : near_names(name, known_)) found += (found.back() == '"' ? "; near: " : ", ") + near;
    throw Error("--slice", expected, found);
  }
  for (const Request& request : requests_) {
    const Tensor part = sliced(request.tensor, request.slice);
    print_output("{} {}\n{}\n", escaped(request.text), part.shape().to_string(), values_text(part));
  }
}

}  // namespace vitrail::app
