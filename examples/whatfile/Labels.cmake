# cmake -DCONFIG=config.min.json -DOUTPUT=labels.h -P Labels.cmake
# The labels of Magika's outputs and the score that each needs, as C arrays.
cmake_minimum_required(VERSION 3.25)
file(READ ${CONFIG} config)
string(JSON count LENGTH ${config} target_labels_space)
string(JSON usual GET ${config} medium_confidence_threshold)
string(JSON special GET ${config} thresholds)
string(JSON renamed GET ${config} overwrite_map)
math(EXPR last "${count} - 1")
set(labels)
set(thresholds)
foreach(i RANGE ${last})
  string(JSON label GET ${config} target_labels_space ${i})
  string(JSON threshold ERROR_VARIABLE missing GET ${special} ${label})
  if(missing)
    set(threshold ${usual})
  endif()
  string(JSON other ERROR_VARIABLE missing GET ${renamed} ${label})
  if(NOT missing)
    set(label ${other})
  endif()
  string(APPEND labels "    \"${label}\",\n")
  string(APPEND thresholds "    ${threshold}f,\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from config.min.json.
enum { NUM_LABELS = ${count} };
static const char *const labels[NUM_LABELS] = {\n${labels}};
static const float thresholds[NUM_LABELS] = {\n${thresholds}};
")
