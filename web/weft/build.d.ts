import type { CallOptions, JSONRPCServer, RPCTransport, WorkerLike } from './weft.js';

export interface Diagnostic {
    file?: string;
    /** From 1. */
    line?: number;
    column?: number;
    severity: 'error' | 'warning';
    message: string;
    code?: string;
}
export interface BuildParams {
    files: Record<string, string>;
    entry: string | string[];
    /** Settings of esbuild that say how, not where: format, target, minify, define, ... */
    config?: Record<string, unknown>;
}
export interface BuildResult {
    outputs: { path: string; text: string; size: number }[];
    warnings: Diagnostic[];
}
export interface BuildProgress {
    method: 'build' | 'buildBackend';
    phase: 'start' | 'load' | 'done' | 'failed';
    file?: string;
    loaded?: number;
    total?: number;
    outputs?: number;
    errors?: number;
}
/** data of an RPCError with the code BUILD_FAILED. */
export interface BuildFailure {
    reason: 'buildFailed';
    errors: number;
    warnings: number;
    diagnostics: Diagnostic[];
    truncated: boolean;
}
export interface BuildWorkerOptions {
    onProgress?: (progress: BuildProgress) => void;
    onWarning?: (warning: Diagnostic & { method: string }) => void;
    /** 600000 when absent. */
    timeout?: number;
}
export declare function buildWorker(worker: WorkerLike & { terminate(): unknown }, options?: BuildWorkerOptions): {
    build(params: BuildParams, options?: CallOptions): Promise<BuildResult>;
    buildBackend(params: BuildParams, options?: CallOptions): Promise<BuildResult>;
    destroy(): void;
};
/** esbuild: the module esbuild or esbuild-wasm, ready to build, or a promise of it. */
export declare function serveBuild(esbuild: any, transport?: RPCTransport): JSONRPCServer;
