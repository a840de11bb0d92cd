import type { CallOptions, JSONRPCServer, RequestContext, RPCError, RPCTransport } from './weft.js';

export interface TaskParams {
    prompt: string;
    /** Names of gates, as the hub's configuration has them. */
    gates: string[];
    /** 10 when absent. */
    maxIterations?: number;
    agent?: string;
    [more: string]: unknown;
}
/** What a gate found. */
export interface Finding {
    file?: string;
    line?: number;
    column?: number;
    severity?: string;
    message: string;
    code?: string;
}
export interface IterationStart {
    taskId?: string;
    iteration: number;
    maxIterations?: number;
    [more: string]: unknown;
}
export interface Progress {
    taskId?: string;
    stream?: string;
    text?: string;
    [more: string]: unknown;
}
export interface GateResult {
    taskId?: string;
    iteration?: number;
    gate: string;
    passed: boolean;
    findings?: Finding[];
    [more: string]: unknown;
}
export interface Complete {
    taskId: string;
    state?: string;
    iterations?: number;
    error?: { code: number; message: string; data?: unknown };
    [more: string]: unknown;
}
export interface Asked {
    requestPermission?: (params: any, context: RequestContext) => unknown;
    askUser?: (params: any, context: RequestContext) => unknown;
}
export interface Told {
    onIterationStart?: (params: IterationStart) => void;
    onProgress?: (params: Progress) => void;
    onGateResult?: (params: GateResult) => void;
}

export declare function ralphToHarness(transport: RPCTransport): {
    requestPermission<T = unknown>(params: Record<string, unknown>, options?: CallOptions): Promise<T>;
    askUser<T = unknown>(params: Record<string, unknown>, options?: CallOptions): Promise<T>;
    iterationStart(params: IterationStart): void;
    progress(params: Progress): void;
    gateResult(params: GateResult): void;
    destroy(): void;
};
export declare function serveRalph(transport: RPCTransport, options?: Told & Asked): JSONRPCServer;

export declare function chiefToRalph(transport: RPCTransport, options?: Told & Asked & { onComplete?: (params: Complete) => void }): {
    sendTask(params: TaskParams, options?: CallOptions): Promise<{ taskId: string }>;
    cancelTask(params: { taskId: string }, options?: CallOptions): Promise<unknown>;
    awaitTask(params: { taskId: string }, options?: CallOptions): Promise<Complete>;
    destroy(): void;
};
export declare function serveChief(transport: RPCTransport, options: {
    sendTask: (params: TaskParams, context: RequestContext) => { taskId: string } | Promise<{ taskId: string }>;
    cancelTask: (params: { taskId: string }, context: RequestContext) => unknown;
}): {
    iterationStart(params: IterationStart): void;
    progress(params: Progress): void;
    gateResult(params: GateResult): void;
    complete(params: Complete): void;
    destroy(): void;
};

export declare function gateFailed(gate: string, findings: Finding[]): RPCError;
export declare function permissionDenied(message?: string): RPCError;
export declare function taskCancelled(taskId?: string): RPCError;
export declare function contextOverflow(data?: Record<string, unknown>): RPCError;
