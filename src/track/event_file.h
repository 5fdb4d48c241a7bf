#pragma once
// TensorBoard's event files: records framed as TFRecord (length and checksums), each a protobuf `Event` with scalar
// summaries. The few fields that are needed are encoded by hand; nothing of TensorFlow is.

#include <string>
#include <vector>

#include "track/metrics.h"

namespace echelon {

std::string event_file_header(double unix_seconds);  // the record with which every file begins
std::string to_event(const MetricPoint& point);      // one record

// The points of a run in `directory`, as TensorBoard finds them. What is there already is replaced by one file with
// `kept` (the points before a resume), and new points are appended to it. Throws DiskError.
MetricsWriter::Output event_output(Disk& disk, const std::string& directory, double unix_seconds,
                                   const std::vector<MetricPoint>& kept);

}  // namespace echelon
