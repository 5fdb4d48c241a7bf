#pragma once
// The newest numbers of the runs that go on, and how many runs there are in which state, in the text format that
// Prometheus scrapes (version 0.0.4).

#include <string>

#include "registry/registry.h"
#include "web/series_store.h"

namespace echelon::web {

std::string prometheus_text(Registry& registry, SeriesStore& series, const std::string& root);

std::string prometheus_name(const std::string& metric);  // "echelon_test_accuracy"
std::string prometheus_label(const std::string& value);  // quotes, backslashes and line ends escaped

}  // namespace echelon::web
