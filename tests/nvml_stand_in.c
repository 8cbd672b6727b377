/* A driver's NVML with one GPU, for machines without one. The file NVML_STAND_IN names has a line "pid percent" for each
   process on it, read anew at each call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { unsigned pid; unsigned long long memory; unsigned instance, compute_instance; } Process;
typedef struct { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; } Sample;
typedef struct { unsigned long long total, free, used; } Memory;

static int rows(unsigned *pids, unsigned *percents, int most) {
    const char *name = getenv("NVML_STAND_IN");
    FILE *file = name ? fopen(name, "r") : NULL;
    int count = 0;
    if (!file) return 0;
    while (count < most && fscanf(file, "%u %u", &pids[count], &percents[count]) == 2) count++;
    fclose(file);
    return count;
}

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = (void *)1; return index ? 2 : 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) { *handle = (void *)1; return strcmp(uuid, "GPU-1") ? 6 : 0; }
int nvmlDeviceGetName(void *handle, char *text, unsigned size) { snprintf(text, size, "Stand-in GPU"); return 0; }
int nvmlDeviceGetUUID(void *handle, char *text, unsigned size) { snprintf(text, size, "GPU-1"); return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.1"); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) { *major = 9; *minor = 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
    memory->total = 80000000000, memory->used = 123456789;
    return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *count, Process *found) { *count = 0; return 0; }

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, Process *found) {
    unsigned pids[64], percents[64];
    int n = rows(pids, percents, 64);
    for (int i = 0; i < n; i++) found[i].pid = pids[i];
    *count = n;
    return 0;
}

int nvmlDeviceGetProcessUtilization(void *handle, Sample *found, unsigned *count, unsigned long long since) {
    unsigned pids[64], percents[64];
    int n = rows(pids, percents, 64);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < n; i++) {
        found[i].pid = pids[i];
        found[i].at = now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
        found[i].sm = percents[i];
    }
    *count = n;
    return n ? 0 : 6; /* not found */
}
