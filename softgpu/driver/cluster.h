// Clusters of blocks: what a function asks for, what a launch may have, and how many fit.
#pragma once

#include "softgpu/driver/graph.h"
#include "softgpu/driver/module.h"

namespace softgpu {

// Fills in config->cluster from the function where the launch says nothing, and refuses what the
// driver refuses at once.
CUresult ChooseCluster(const Function& function, LaunchConfig* config);
// That for every kernel of a graph that is about to run, its child graphs' too.
CUresult ChooseClusters(Graph& plan);

void ReadCluster(const CUlaunchAttributeValue& value, LaunchConfig* config);
int ClusterBlocks(const LaunchConfig& config);  // at least 1

// A function's attributes from CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET on.
CUresult GetClusterAttribute(int* value, CUfunction_attribute attribute, const Function& function);
CUresult SetClusterAttribute(Function& function, CUfunction_attribute attribute, int value);

}  // namespace softgpu
